"""Many small windows of two images compared at once: shift, height and significance of every peak."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.peaks import find_peaks, neighbourhoods
from xcorr_app.correlation.plane import cross_correlate
from xcorr_app.correlation.subpixel import refine
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.significance import significance

_RIM = 1
"""Shifts beyond the window, which the peaks at its edge are interpolated from."""
_LEAST_VARIANCE = 1e-12
"""Share of the square of the largest value below which a window holds nothing but rounding."""


@dataclass(frozen=True)
class WindowMatch:
    """One entry a window, on the host."""

    shift: NDArray[np.float64]
    """(n, 2) rows, columns in pixels by which the second image shows the window displaced; NaN where flat."""
    score: NDArray[np.float64]
    """(n,) zero-mean normalised correlation at the peak."""
    significance: NDArray[np.float64]
    """(n,) height of the peak in standard deviations of the rest of its plane; NaN where that is too small to say."""
    false_alarm: NDArray[np.float64]
    """(n,) probability of such a peak by chance; NaN where not known."""
    on_edge: NDArray[np.bool_]
    """(n,) whether the peak is on the edge of the search, or rises beyond it."""


def windows_of(image: Array, rows: NDArray[np.intp], columns: NDArray[np.intp], size: tuple[int, int]) -> Array:
    """Windows (n, *size) of an image whose first pixels are at (n,) rows and columns; edges of the image continued."""
    xp = array_namespace(image)
    y = np.clip(rows[:, None] + np.arange(size[0]), 0, image.shape[0] - 1)
    x = np.clip(columns[:, None] + np.arange(size[1]), 0, image.shape[1] - 1)
    return image[xp.asarray(y)[:, :, None], xp.asarray(x)[:, None, :]]


def match_windows(
    first: Array,
    second: Array,
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
    size: int,
    reach: int,
    offset: NDArray[np.intp],
    seen: Array | None = None,
    *,
    both_ways: bool = False,
) -> WindowMatch:
    """Find where the second image (Y, X) shows windows of the first.

    Windows of `size` pixels a side begin at (n,) rows and columns; they are searched up to `reach` pixels around
    their `offset` (n, 2). The part of the second image that they are compared with is larger, so that at every shift
    they overlap wholly. Pixels of the first image that are not `seen` (Y, X) take no part.

    With `both_ways`, for images that show the same in the same place but for a fraction of a pixel and an `offset` of
    zero, windows of the second are looked for in the first as well and the planes averaged: what a window holds by
    chance then pulls the peak to neither side.
    """
    xp = array_namespace(first)
    margin = reach + _RIM
    starts = (rows, columns), (rows + offset[:, 0] - margin, columns + offset[:, 1] - margin)
    part = None if seen is None else windows_of(seen, rows, columns, (size, size))
    small = _without_means(windows_of(first, *starts[0], (size, size)), part)
    flat = (small * small).mean(axis=(1, 2)) <= _LEAST_VARIANCE * xp.abs(first).max() ** 2
    planes = _planes(small, second, starts[1], margin)
    if both_ways:
        there = _without_means(windows_of(second, *starts[0], (size, size)), part)
        planes = (planes + _planes(there, first, starts[1], margin)[:, ::-1, ::-1]) / 2
    planes = xp.where(flat[:, None, None], np.nan, xp.clip(planes.astype(np.float64), -1.0, 1.0))
    inner = slice(_RIM, 2 * margin + 1 - _RIM)
    peaks = find_peaks(planes, (inner, inner))
    near = to_host(neighbourhoods(planes, peaks.row, peaks.column, 1)).astype(np.float64)
    rating = significance(planes, peaks.row, peaks.column, peaks.value, scores=True)
    value = to_host(peaks.value).astype(np.float64)
    found = np.isfinite(value)
    fraction, _ = refine(np.where(found[:, None, None], near, 0.0), "gaussian", 1)
    peak = np.stack([to_host(peaks.row), to_host(peaks.column)], axis=1)
    with np.errstate(invalid="ignore"):
        higher = (near > value[:, None, None]).any(axis=(1, 2))
    edge = (np.abs(peak - margin) >= reach).any(axis=1) if reach > 0 else np.zeros(len(rows), dtype=bool)
    shift = np.where(found[:, None], peak - margin + offset + fraction, np.nan)
    return WindowMatch(shift, value, rating.z, rating.false_alarm, (edge | higher) & found)


def _without_means(windows: Array, part: Array | None) -> Array:
    """Windows (n, h, w) less their means; what is not in their `part` is zero."""
    if part is None:
        return windows - windows.mean(axis=(1, 2), keepdims=True)
    xp = array_namespace(windows)
    means = (windows * part).sum(axis=(1, 2)) / xp.maximum(part.sum(axis=(1, 2)), 1)
    return xp.where(part, windows - means[:, None, None].astype(windows.dtype), 0.0).astype(windows.dtype)


def _planes(small: Array, image: Array, starts: tuple[NDArray[np.intp], NDArray[np.intp]], margin: int) -> Array:
    """Scores (n, ny, nx) of windows (n, h, w) within larger ones of an image, which begin at `starts`."""
    size = small.shape[1] + 2 * margin, small.shape[2] + 2 * margin
    large = windows_of(image, *starts, size)
    large = large - large.mean(axis=(1, 2), keepdims=True)
    window = ShiftWindow(0, 2 * margin, 0, 2 * margin)
    return cross_correlate(large, small[:, None], "n-to-mn", window, check_finite=False)[:, 0]
