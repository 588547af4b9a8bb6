"""Filters on the device: a stack and taps in, filtered stack out, through one of the filter kernels."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import DataTypeError, ShapeError
from xcorr_app.gpu.runtime.binder import BoundLaunch, BoundPart, as_struct, null_pointer
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device, on_device_of
from xcorr_app.gpu.stencil.problem import FILTER_TYPES, FilterProblem, stays_in_range, taps_argument
from xcorr_app.gpu.stencil.reuse import filter_launch, filter_parts

__all__ = ["PreparedFilter", "filter_on_device", "prepare_filter"]


def filter_on_device(
    images: Any,
    taps: npt.ArrayLike,
    *,
    boundary: str = "reflect",
    outside: float = 0.0,
    origin: tuple[int, int] = (0, 0),
    dtype: npt.DTypeLike | None = None,
    kernel: str = "auto",
    double_sums: bool = False,
    tuning: Mapping[str, int] | None = None,
    out: Any = None,
    clipped: Any = None,
) -> Any:
    """Correlate every image of a stack with the same taps (they are not flipped)."""
    taps = np.asarray(taps)
    if images.ndim < 2 or taps.ndim != 2:
        raise ShapeError(f"images {images.shape} and taps {taps.shape} must have at least, and just, two axes")
    stack, image_shape = images.shape[:-2], images.shape[-2:]
    count, macros = math.prod(stack), tuple(sorted(tuning.items())) if tuning else ()
    result_type = images.dtype.name if dtype is None else np.dtype(dtype).name
    with on_device_of(images, out):
        sizes: _Sizes = (image_shape, (taps.shape[0], taps.shape[1]), count, boundary, (origin[0], origin[1]))
        content: _Content = (taps.tobytes(), taps.dtype.str, float(outside))
        how: _How = (images.dtype.name, result_type, kernel, double_sums, macros)
        prepared = _prepared(current_device(), sizes, content, how)
        shape, dense = (*stack, *prepared.problem.result_shape), prepared.dtype
        if out is None:
            out = sys.modules["cupy"].empty(shape, dense)
        elif out.shape != shape or out.dtype != dense or not out.flags.c_contiguous:
            raise ShapeError(f"out must be a dense {dense} array of shape {shape}, not {out.dtype} {out.shape}")
        prepared.run(images, out, clipped)
    return out


_Sizes: TypeAlias = tuple[tuple[int, int], tuple[int, int], int, str, tuple[int, int]]
"""What a `FilterProblem` is made of."""
_Content: TypeAlias = tuple[bytes, str, float]
"""Taps, their type, and the value outside."""
_How: TypeAlias = tuple[str, str, str, bool, tuple[tuple[str, int], ...]]
"""Types of images and result, kernel, whether sums are double, macros."""


@dataclass(frozen=True)
class PreparedFilter:
    """One filter over stacks of one shape and type on one device: everything but the arrays.

    Attributes
    ----------
    problem : FilterProblem
        Sizes, boundary and origin.
    dtype : dtype
        Of the result.
    """

    problem: FilterProblem
    dtype: np.dtype[Any]
    _parts: tuple[BoundPart, ...]
    _taps: Any
    """The struct, as a kernel argument."""
    _uncounted: Any
    """Null pointer in place of a count."""

    def run(self, images: Any, out: Any, clipped: Any = None) -> None:
        """Start the kernels; returns before they have finished."""
        if not images.flags.c_contiguous or _address(images) % 16:
            images = images.copy()
        count = self._uncounted if clipped is None else clipped
        if len(self._parts) == 1:
            self._parts[0].launch(images, out, count, self._taps)
            return
        images = images.reshape(-1, *self.problem.image_shape)
        out = out.reshape(-1, *self.problem.result_shape)
        for first, launch in self._parts:
            launch(images[first:], out[first:], count, self._taps)


def prepare_filter(
    problem: FilterProblem,
    taps: npt.ArrayLike,
    *,
    image_type: str,
    result_type: str,
    outside: float = 0.0,
    kernel: str = "auto",
    double_sums: bool = False,
    tuning: Mapping[str, int] | None = None,
) -> PreparedFilter:
    """Choose and compile for the current device, so that every further call costs a launch."""
    if image_type not in FILTER_TYPES or result_type not in FILTER_TYPES:
        raise DataTypeError(f"images ({image_type}) and result ({result_type}) must be of {', '.join(FILTER_TYPES)}")
    macros = tuple(sorted((tuning or {}).items()))
    weights, value = np.asarray(taps, np.float64), outside if problem.boundary == "constant" else None
    clips = not stays_in_range(float(weights.min()), float(weights.sum()), image_type, result_type, value)
    parts = _bound_parts(current_device(), problem, kernel, image_type, result_type, double_sums, clips, macros)
    values = as_struct(taps_argument(taps, outside, image_type, double_sums=double_sums))
    return PreparedFilter(problem, np.dtype(result_type), parts, values, null_pointer())


@functools.lru_cache(maxsize=256)
def _prepared(_device: int, sizes: _Sizes, content: _Content, how: _How) -> PreparedFilter:
    """Prepare once for taps and sizes: that takes longer than a launch."""
    problem, (taps, dtype, outside) = FilterProblem(*sizes), content
    image_type, result_type, kernel, double_sums, macros = how
    return prepare_filter(
        problem,
        np.frombuffer(taps, dtype).reshape(problem.filter_shape),
        image_type=image_type,
        result_type=result_type,
        outside=outside,
        kernel=kernel,
        double_sums=double_sums,
        tuning=dict(macros),
    )


@functools.lru_cache(maxsize=256)
def _bound_parts(
    device: int,
    problem: FilterProblem,
    kernel: str,
    image_type: str,
    result_type: str,
    double_sums: bool,
    clips: bool,
    macros: tuple[tuple[str, int], ...],
) -> tuple[BoundPart, ...]:
    """Choose and compile once for a problem: that takes longer than a launch."""
    options: dict[str, Any] = {
        "image_type": image_type,
        "result_type": result_type,
        "double_sums": double_sums,
        "clips": clips,
        "tuning": dict(macros),
        "device": device_limits(device),
    }
    chosen = filter_launch(problem, kernel, **options).entry
    parts = []
    for image, part in filter_parts(problem, chosen):
        launch = filter_launch(part, chosen, **options)
        parts.append(BoundPart(image, BoundLaunch.of(launch, launch.extra)))
    return tuple(parts)


def _address(images: Any) -> int:
    return int(images.data.ptr)
