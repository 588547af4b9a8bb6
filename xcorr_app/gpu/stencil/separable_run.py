"""Taps of low rank on the device: one read and one write; too long for that, CuPy's ``correlate1d`` along each axis."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from xcorr_app.gpu.runtime.arrays import dense
from xcorr_app.gpu.runtime.binder import BoundLaunch, BoundPart, as_struct
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.stencil.reuse_run import over_parts
from xcorr_app.gpu.stencil.separable import (
    SeparableProblem,
    Vector,
    fits_one_pass,
    never_clips,
    separable_launch,
    terms_argument,
)

Terms = tuple[tuple[Vector, Vector], ...]
"""Columns and rows."""


def prepare_separable(
    problem: SeparableProblem,
    terms: Terms,
    *,
    image_type: str,
    result_type: str,
    outside: float = 0.0,
    kernel: str = "separable",
) -> Callable[[Any, Any, Any], None]:
    """Choose and compile for the current device, so that every further call costs a launch.

    What is returned takes images, result, and where clipped pixels are counted or None. ``"two_passes"`` is taken if it
    is asked for, and for taps too long for one.
    """
    if kernel == "two_passes" or not fits_one_pass(problem.filter_shape, image_type):
        return lambda images, out, clipped: two_passes(dense(images), terms, problem, outside, out, clipped)
    value = outside if problem.boundary == "constant" else None
    values = as_struct(terms_argument(terms, value or 0.0, image_type))
    clips = not never_clips(terms, image_type, result_type, value)
    parts = _bound_parts(current_device(), problem, image_type, result_type, clips)
    return over_parts(problem, parts, values)


@functools.lru_cache(maxsize=256)
def _bound_parts(
    device: int,
    problem: SeparableProblem,
    image_type: str,
    result_type: str,
    clips: bool,
) -> tuple[BoundPart, ...]:
    """Choose and compile once for a problem: that takes longer than a launch."""
    options: dict[str, Any] = {"image_type": image_type, "result_type": result_type, "clips": clips}
    limits = device_limits(device)
    launches = ((image, separable_launch(part, **options, device=limits)) for image, part in problem.parts())
    return tuple(BoundPart(image, BoundLaunch.of(launch, launch.extra)) for image, launch in launches)


def two_passes(
    images: Any,
    terms: tuple[tuple[Vector, Vector], ...],
    problem: SeparableProblem,
    outside: float,
    out: Any,
    clipped: Any = None,
) -> None:
    """Correlate a stack with terms of any length.

    Integers of 16 bits are summed in float64: float32 would round more coarsely than their results allow.
    """
    cupy, ndimage = importlib.import_module("cupy"), importlib.import_module("cupyx.scipy.ndimage")
    work = np.dtype(np.float32 if images.dtype == np.float32 else np.float64)
    is_valid = problem.boundary == "valid"
    mode = "constant" if is_valid else problem.boundary
    # Results whose footprint lies inside are the middle of those with zeros outside.
    kept = tuple(
        slice(taps // 2, taps // 2 + size) if is_valid else slice(None)
        for taps, size in zip(problem.filter_shape, problem.result_shape, strict=True)
    )
    results = out.reshape(-1, *problem.result_shape)
    for image, result in zip(images.reshape(-1, *problem.image_shape), results, strict=True):
        frame, total = image.astype(work), None
        for column, row in terms:
            value = 0.0 if is_valid else float(outside)
            options = {"axis": 0, "mode": mode, "cval": value, "origin": problem.origin[0]}
            down = ndimage.correlate1d(frame, cupy.asarray(column, work), **options)[kept[0]]
            # The row pass meets an outside that the column pass has turned into the value times the column's sum.
            options |= {"axis": 1, "cval": value * float(column.sum()), "origin": problem.origin[1]}
            across = ndimage.correlate1d(down, cupy.asarray(row, work), **options)[:, kept[1]]
            total = across if total is None else total + across
        _store(cupy, total, result, clipped)


def _store(cupy: Any, sums: Any, result: Any, clipped: Any) -> None:
    """Write sums as results: integers rounded half to even and clipped, with a count."""
    if result.dtype.kind == "f":
        result[...] = sums
        return
    limits = np.iinfo(result.dtype)
    rounded = cupy.rint(cupy.where(cupy.isnan(sums), 0, sums))
    if clipped is not None:
        clipped += cupy.count_nonzero((rounded < limits.min) | (rounded > limits.max)).astype(np.uint64)
    result[...] = cupy.clip(rounded, limits.min, limits.max)
