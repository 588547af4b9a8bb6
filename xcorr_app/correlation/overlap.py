"""Overlaps of two matrices under a shift, and sums over all overlaps of a window at once.

For every shift the overlap is a rectangle in each matrix. From one shift to the next it gains or loses a row or a
column at either end: after one pass over the image for the first shift, its sums are running sums of those rows, and
then of those columns, in float64. Where there are many shifts, on the host, differences of a summed-area table (Crow
1984, doi 10.1145/964965.808600) are cheaper.
"""

from __future__ import annotations

import functools
from itertools import pairwise

import cv2
import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.peaks.overlap_edges import axis_overlap
from xcorr_app.gpu.runtime.arrays import Array, array_namespace

_GROUP = 16
"""Rows whose sum in float32 is off by less than a millionth, and at random."""

_MANY = 8
"""Rows of an image for each row of the window from which on shifts are too few for a table of the whole image."""

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
        self._left, self._right = _intervals(left_shape, right_shape, window)

    def of_left(self, images: Array) -> tuple[Array, Array]:
        """Return sums and sums of squares of left matrices (..., H, W): two float64 arrays (..., ny, nx)."""
        return _sums_and_squares(images, *self._left)

    def of_right(self, images: Array) -> tuple[Array, Array]:
        """Return sums and sums of squares of right matrices (..., H', W'): two float64 arrays (..., ny, nx)."""
        return _sums_and_squares(images, *self._right)


class Intervals:
    """Overlaps along one axis, from shift to shift: one end or the other moves by one element, or both do."""

    def __init__(self, start: NDArray[np.intp], stop: NDArray[np.intp]) -> None:
        self.count = start.size
        self.runs = _runs(start, stop)
        """Shifts through which both ends move evenly, and where these are: triples of slices."""
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
                (_run(np.flatnonzero(moved) + 1), _run(end[:-1][moved] - before))
                for end, before, moved in ends
                if moved.any()
            ]
            for ends in (moves, leaves)
        )
        """At which of them elements enter or leave, and which elements: pairs of slices."""


@functools.lru_cache(maxsize=64)
def _intervals(
    left_shape: tuple[int, int], right_shape: tuple[int, int], window: ShiftWindow
) -> tuple[tuple[Intervals, Intervals], ...]:
    """Overlaps along rows and columns, of the left and of the right: of small images found as slowly as sums."""
    rows = axis_overlap(left_shape[0], right_shape[0], window.dys)
    columns = axis_overlap(left_shape[1], right_shape[1], window.dxs)
    return tuple((Intervals(*along_y), Intervals(*along_x)) for along_y, along_x in zip(rows, columns, strict=True))


def _runs(start: NDArray[np.intp], stop: NDArray[np.intp]) -> list[tuple[slice, slice, slice]]:
    steps = np.diff([start, stop], axis=1)
    turns = np.flatnonzero((steps[:, 1:] != steps[:, :-1]).any(axis=0)) + 2
    leaps = np.flatnonzero((abs(steps) > 1).any(axis=0)) + 1
    parts = [slice(int(a), int(b)) for a, b in pairwise(np.unique([0, *turns, *leaps, start.size]))]
    return [(part, _run_or_one(start[part]), _run_or_one(stop[part])) for part in parts]


def _run_or_one(numbers: NDArray[np.intp]) -> slice:
    """Slice of numbers as of `_run`; of one that stays as it is, of one element, which broadcasts."""
    return _run(numbers[:1] if numbers[0] == numbers[-1] else numbers)


def _run(numbers: NDArray[np.intp]) -> slice:
    """Slice of consecutive numbers, which rise or fall."""
    first, last = int(numbers[0]), int(numbers[-1])
    return slice(first, last + 1) if last >= first else slice(first, last - 1 if last else None, -1)


def _sums_and_squares(images: Array, rows: Intervals, columns: Intervals) -> tuple[Array, Array]:
    xp = array_namespace(images)
    if xp is np and images.shape[-2] <= _MANY * rows.count:
        return _by_tables(images, rows, columns)
    # Shifts first: rows of all images then lie in one piece, and a running sum is one addition.
    by_row = xp.zeros((rows.count, 2, *images.shape[:-2], images.shape[-1]))
    running = by_row[rows.there]
    running[:1] = _sums_of_rows(images[..., rows.first, :])
    for steps, add in ((rows.entering, xp.add), (rows.leaving, xp.subtract)):
        for at, which in steps:
            values = xp.moveaxis(images[..., which, :], -2, 0)
            for moment, power in enumerate((values, values * values)):
                add(running[at, moment], power, out=running[at, moment])
    if xp is np:
        for before, here in pairwise(running):
            here += before
    else:
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


def _by_tables(
    images: NDArray[np.floating], rows: Intervals, columns: Intervals
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Differences of summed-area tables, image by image, so that a table stays in the cache."""
    of_values, of_squares = (np.empty((images.shape[-2] + 1, images.shape[-1] + 1)) for _ in range(2))
    results = [np.empty((*images.shape[:-2], rows.count, columns.count)) for _ in range(2)]
    of_rows = np.empty((rows.count, images.shape[-1] + 1))
    for index in np.ndindex(images.shape[:-2]):
        cv2.integral2(images[index], of_values, of_squares, cv2.CV_64F, cv2.CV_64F)
        for table, result in zip((of_values, of_squares), results, strict=True):
            for at, start, stop in rows.runs:
                np.subtract(table[stop], table[start], out=of_rows[at])
            for at, start, stop in columns.runs:
                np.subtract(of_rows[:, stop], of_rows[:, start], out=result[index][:, at])
    return results[0], results[1]


def _sums_of_rows(values: Array) -> Array:
    """Sums over rows (..., n, W) and of their squares, (2, ..., W), in float64.

    Of float32 first over groups of 16 rows, which is three times as fast.
    """
    xp = array_namespace(values)
    grouped = values.shape[-2] // _GROUP * _GROUP if values.dtype == np.float32 else 0

    def summed(rows: Array) -> Array:
        groups = rows[..., :grouped, :].reshape(*rows.shape[:-2], -1, _GROUP, rows.shape[-1])
        of_groups, rest = groups.sum(axis=-2), rows[..., grouped:, :]
        return of_groups.sum(axis=-2, dtype=np.float64) + rest.sum(axis=-2, dtype=np.float64)

    if xp is not np:
        return xp.stack([summed(values), summed(values * values)])
    sums = np.empty((2, *values.shape[:-2], values.shape[-1]))
    # One by one, so that squares stay in the cache.
    for index in np.ndindex(values.shape[:-2]):
        sums[0][index], sums[1][index] = summed(values[index]), summed(values[index] * values[index])
    return sums
