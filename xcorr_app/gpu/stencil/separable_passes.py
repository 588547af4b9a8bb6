"""Taps too long for the fused pass: a pass of CuPy's ``correlate1d`` along each axis, image after image."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from xcorr_app.gpu.stencil.separable import SeparableProblem, Vector


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
