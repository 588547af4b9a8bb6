"""Overlaps of two matrices under a shift, and sums over all overlaps of a window at once.

For every shift the overlap is a rectangle in each matrix. On the host its sums are differences of a small table
(:mod:`xcorr_app.correlation.overlap_tables`). On a device, the overlap gains or loses a row or a column at either end
from one shift to the next: after one pass over the image for the first shift, its sums are running sums of those rows,
and then of those columns, in float64.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.overlap_tables import Collapsed, run, sums_by_tables
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.peaks.overlap_edges import axis_overlap
from xcorr_app.gpu.runtime.arrays import Array, array_namespace

_GROUP = 16
"""Rows whose sum in float32 is off by less than a millionth, and at random."""

Bounds = tuple[NDArray[np.intp], NDArray[np.intp]]


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


class OverlapSums:
    """Sums of an image and of its square over the overlap at every shift of a window.

    Parameters
    ----------
    left_shape, right_shape : tuple of int
        Shapes of the two matrices, (rows, columns).
    window : ShiftWindow
    """

    def __init__(self, left_shape: tuple[int, int], right_shape: tuple[int, int], window: ShiftWindow) -> None:
        self._problem = left_shape, right_shape, window

    def of_left(self, images: Array) -> tuple[Array, Array]:
        """Return sums and sums of squares of left matrices (..., H, W): two float64 arrays (..., ny, nx)."""
        return self._of(images, 0)

    def of_right(self, images: Array) -> tuple[Array, Array]:
        """Return sums and sums of squares of right matrices (..., H', W'): two float64 arrays (..., ny, nx)."""
        return self._of(images, 1)

    def _of(self, images: Array, side: int) -> tuple[Array, Array]:
        on_host = array_namespace(images) is np
        axes = _prepared(*self._problem, on_host=on_host)[side]
        return sums_by_tables(images, *axes) if on_host else running_sums(images, *axes)


class Intervals:
    """Overlaps along one axis, from shift to shift: one end or the other moves by one element, or both do."""

    def __init__(self, start: NDArray[np.intp], stop: NDArray[np.intp]) -> None:
        self.count = start.size
        there = np.flatnonzero(stop > start)
        self.there = slice(int(there[0]), int(there[-1]) + 1) if there.size else slice(0, 0)
        """Shifts at which anything overlaps."""
        start, stop = start[self.there], stop[self.there]
        self.first = slice(int(start[0]), int(stop[0])) if there.size else slice(0, 0)
        """The overlap at the first of them."""
        moves = (start, 1, np.diff(start) < 0), (stop, 0, np.diff(stop) > 0)
        leaves = (start, 0, np.diff(start) > 0), (stop, 1, np.diff(stop) < 0)
        self.entering, self.leaving = (
            [
                (run(np.flatnonzero(moved) + 1), run(end[:-1][moved] - before))
                for end, before, moved in ends
                if moved.any()
            ]
            for ends in (moves, leaves)
        )
        """At which of them elements enter or leave, and which elements: pairs of slices."""


@functools.lru_cache(maxsize=64)
def _prepared(
    left_shape: tuple[int, int], right_shape: tuple[int, int], window: ShiftWindow, *, on_host: bool
) -> tuple[tuple[Any, Any], ...]:
    """Overlaps along rows and columns, of the left and of the right: of small images found as slowly as sums."""
    kind = Collapsed.of if on_host else Intervals
    rows = axis_overlap(left_shape[0], right_shape[0], window.dys)
    columns = axis_overlap(left_shape[1], right_shape[1], window.dxs)
    return tuple((kind(*along_y), kind(*along_x)) for along_y, along_x in zip(rows, columns, strict=True))


def running_sums(images: Array, rows: Intervals, columns: Intervals) -> tuple[Array, Array]:
    """Sums of images (..., h, w) and of their squares over all overlaps, two arrays (..., ny, nx)."""
    xp = array_namespace(images)
    # Shifts first: rows of all images then lie in one piece, and a running sum is one addition.
    by_row = xp.zeros((rows.count, 2, *images.shape[:-2], images.shape[-1]))
    running = by_row[rows.there]
    running[:1] = _sums_of_rows(images[..., rows.first, :])
    for steps, add in ((rows.entering, xp.add), (rows.leaving, xp.subtract)):
        for at, which in steps:
            values = xp.moveaxis(images[..., which, :], -2, 0)
            for moment, power in enumerate((values, values * values)):
                add(running[at, moment], power, out=running[at, moment])
    running[:] = running.cumsum(axis=0)
    sums = xp.zeros((*by_row.shape[:-1], columns.count))
    running = sums[..., columns.there]
    running[..., :1] = by_row[..., columns.first].sum(axis=-1, keepdims=True)
    for steps, add in ((columns.entering, xp.add), (columns.leaving, xp.subtract)):
        for at, which in steps:
            add(running[..., at], by_row[..., which], out=running[..., at])
    running[...] = running.cumsum(axis=-1)
    sums, squares = xp.moveaxis(sums, 0, -2)
    return sums, squares


def _sums_of_rows(values: Array) -> Array:
    """Sums over rows (..., n, W) and of their squares, (2, ..., W), in float64.

    Of float32 first over groups of 16 rows: most additions are of the faster type.
    """
    xp = array_namespace(values)
    grouped = values.shape[-2] // _GROUP * _GROUP if values.dtype == np.float32 else 0

    def summed(rows: Array) -> Array:
        groups = rows[..., :grouped, :].reshape(*rows.shape[:-2], -1, _GROUP, rows.shape[-1])
        of_groups, rest = groups.sum(axis=-2), rows[..., grouped:, :]
        return of_groups.sum(axis=-2, dtype=np.float64) + rest.sum(axis=-2, dtype=np.float64)

    return xp.stack([summed(values), summed(values * values)])
