"""Taps of low rank on the device: a stack and terms in, filtered stack out, one read and one write."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.gpu.runtime.binder import BoundLaunch, BoundPart, as_struct, null_pointer
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device, on_device_of
from xcorr_app.gpu.stencil.problem import FILTER_TYPES
from xcorr_app.gpu.stencil.separable import (
    SeparableProblem,
    Vector,
    fits_one_pass,
    never_clips,
    separable_launch,
    terms_argument,
)
from xcorr_app.gpu.stencil.separable_passes import two_passes

__all__ = ["prepare_separable", "separable_on_device"]

Terms = tuple[tuple[Vector, Vector], ...]
"""Columns and rows."""


def separable_on_device(
    images: Any,
    terms: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]],
    *,
    boundary: str = "reflect",
    outside: float = 0.0,
    origin: tuple[int, int] = (0, 0),
    dtype: npt.DTypeLike | None = None,
    out: Any = None,
    clipped: Any = None,
    kernel: str = "auto",
    tuning: Mapping[str, int] | None = None,
) -> Any:
    """Correlate every image of a stack with a sum of separable terms (they are not flipped)."""
    result_dtype = np.dtype(dtype or images.dtype)
    image_type, result_type = images.dtype.name, result_dtype.name
    if image_type not in FILTER_TYPES or result_type not in FILTER_TYPES:
        raise DataTypeError(f"images ({image_type}) and result ({result_type}) must be of {', '.join(FILTER_TYPES)}")
    if images.ndim < 2:
        raise ShapeError(f"images {images.shape} must have at least two axes")
    vectors = _checked(terms)
    filter_shape = (len(vectors[0][0]), len(vectors[0][1]))
    stack, image_shape = images.shape[:-2], images.shape[-2:]
    # A stack without images has a result without images, of the shape that one would have.
    count = math.prod(stack)
    problem = SeparableProblem(image_shape, filter_shape, max(1, count), boundary, (origin[0], origin[1]), len(vectors))
    shape = (*stack, *problem.result_shape)
    with on_device_of(images, out):
        if out is None:
            out = sys.modules["cupy"].empty(shape, result_dtype)
        elif out.shape != shape or out.dtype != result_dtype or not out.flags.c_contiguous:
            raise ShapeError(f"out must be a dense {result_dtype} array of shape {shape}, not {out.dtype} {out.shape}")
        if count == 0:
            return out
        types: dict[str, str] = {"image_type": image_type, "result_type": result_type}
        run = prepare_separable(problem, vectors, **types, outside=outside, kernel=kernel, tuning=tuning)
        run(images, out, clipped)
    return out


def prepare_separable(
    problem: SeparableProblem,
    terms: Terms,
    *,
    image_type: str,
    result_type: str,
    outside: float = 0.0,
    kernel: str = "auto",
    tuning: Mapping[str, int] | None = None,
) -> Callable[[Any, Any, Any], None]:
    """Choose and compile for the current device, so that every further call costs a launch.

    What is returned takes images, result, and where clipped pixels are counted or None. ``"two_passes"`` is taken if it
    is asked for, and for taps too long for one.
    """
    if kernel not in ("auto", "separable", "two_passes"):
        raise ArgumentError(f"unknown kernel {kernel!r}: choose from auto, separable, two_passes")
    if kernel == "two_passes" or not fits_one_pass(problem.filter_shape, image_type):
        return lambda images, out, clipped: two_passes(_dense(images), terms, problem, outside, out, clipped)
    value = outside if problem.boundary == "constant" else None
    macros = tuple(sorted((tuning or {}).items()))
    values = as_struct(terms_argument(terms, value or 0.0, image_type))
    clips = not never_clips(terms, image_type, result_type, value)
    parts = _bound_parts(current_device(), problem, image_type, result_type, clips, macros)
    uncounted = null_pointer()

    def run(images: Any, out: Any, clipped: Any) -> None:
        images = _dense(images)
        count = uncounted if clipped is None else clipped
        if len(parts) > 1:
            images, out = images.reshape(-1, *problem.image_shape), out.reshape(-1, *problem.result_shape)
        for first, launch in parts:
            arrays = (images[first:], out[first:]) if first else (images, out)
            launch(*arrays, count, values)

    return run


def _dense(images: Any) -> Any:
    return images if images.flags.c_contiguous else sys.modules["cupy"].ascontiguousarray(images)


def _checked(terms: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]]) -> Terms:
    vectors = tuple((np.asarray(column, np.float64), np.asarray(row, np.float64)) for column, row in terms)
    if any(vector.ndim != 1 for term in vectors for vector in term):
        raise ShapeError("the taps of a term must be two vectors: a column and a row")
    if not vectors or len({(len(column), len(row)) for column, row in vectors}) > 1:
        raise ShapeError("terms must be one or two pairs, with columns of one length and rows of one length")
    return vectors


@functools.lru_cache(maxsize=256)
def _bound_parts(
    device: int,
    problem: SeparableProblem,
    image_type: str,
    result_type: str,
    clips: bool,
    macros: tuple[tuple[str, int], ...],
) -> tuple[BoundPart, ...]:
    """Choose and compile once for a problem: that takes longer than a launch."""
    limits = device_limits(device)
    options: dict[str, Any] = {"image_type": image_type, "result_type": result_type, "clips": clips}
    parts = []
    for image, part in problem.parts():
        launch = separable_launch(part, **options, device=limits, tuning=dict(macros))
        parts.append(BoundPart(image, BoundLaunch.of(launch, launch.extra)))
    return tuple(parts)
