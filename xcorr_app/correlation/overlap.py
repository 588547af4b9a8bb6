"""Overlaps of two matrices under a shift, and sums over all overlaps of a window at once.

For every shift the overlap is a rectangle in each matrix, whose sums are differences of a small table
(:mod:`xcorr_app.correlation.overlap_tables`; on a device, :mod:`xcorr_app.gpu.peaks.summed_area`).
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.overlap_tables import CollapsedAxis, sums_by_tables
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.peaks.overlap_edges import axis_overlap

Floats = NDArray[np.floating]


def overlap_slices(
    left_shape: tuple[int, ...], right_shape: tuple[int, ...], dy: int, dx: int
) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """Slices of `left` and of `right` that lie on each other at shift ``(dy, dx)``."""
    of_left, of_right = [], []
    for left_size, right_size, shift in zip(left_shape, right_shape, (dy, dx), strict=True):
        start, stop = max(0, -shift), min(right_size, left_size - shift)
        stop = max(start, stop)
        of_right.append(slice(start, stop))
        of_left.append(slice(start + shift, stop + shift) if stop > start else slice(0, 0))
    return (of_left[0], of_left[1]), (of_right[0], of_right[1])


def overlap_counts(
    left_shape: tuple[int, int], right_shape: tuple[int, int], window: ShiftWindow
) -> NDArray[np.float64]:
    """Number of overlapping element pairs at every shift, shape `window.shape`."""
    rows = _counts_along(left_shape[0], right_shape[0], window.dy_min, window.dy_max)
    columns = _counts_along(left_shape[1], right_shape[1], window.dx_min, window.dx_max)
    return rows[:, None] * columns[None, :]


@functools.lru_cache(maxsize=64)
def _counts_along(left_size: int, right_size: int, first: int, last: int) -> NDArray[np.float64]:
    """Overlapping elements along an axis, for shifts from the first to the last: of small images slow to count."""
    _, (start, stop) = axis_overlap(left_size, right_size, np.arange(first, last + 1))
    return (stop - start).astype(np.float64)


def overlap_sums(
    images: Floats, left_shape: tuple[int, int], right_shape: tuple[int, int], window: ShiftWindow, *, of_right: bool
) -> tuple[Floats, Floats]:
    """Sums of left or right matrices (..., H, W) on the host, and of their squares, over the overlap at every shift.

    Two float64 arrays (..., ny, nx).
    """
    return sums_by_tables(images, *_collapsed(left_shape, right_shape, window)[of_right])


@functools.lru_cache(maxsize=64)
def _collapsed(
    left_shape: tuple[int, int], right_shape: tuple[int, int], window: ShiftWindow
) -> tuple[tuple[CollapsedAxis, CollapsedAxis], ...]:
    """Overlaps along rows and columns, of the left and of the right: of small images found as slowly as sums."""
    rows = axis_overlap(left_shape[0], right_shape[0], window.dys)
    columns = axis_overlap(left_shape[1], right_shape[1], window.dxs)
    sides = zip(rows, columns, strict=True)
    return tuple((CollapsedAxis.of(*along_y), CollapsedAxis.of(*along_x)) for along_y, along_x in sides)
