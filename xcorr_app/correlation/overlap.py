"""Overlaps of two matrices under a shift, and sums over all overlaps of a window at once.

For every shift the overlap is a rectangle in each matrix. Its sum is a difference of four corners of the summed
area table; only rows and columns at which some rectangle begins or ends are needed, so the table is built on
those alone: within a window of S shifts that is one pass over the image and a table of about 2S x 2S entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

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
    counts = []
    for axis, shifts in enumerate((window.dys, window.dxs)):
        _, (start, stop) = axis_overlap(left_shape[axis], right_shape[axis], shifts)
        counts.append((stop - start).astype(np.float64))
    return counts[0][:, None] * counts[1][None, :]


class OverlapSums:
    """Sums of an image and of its square over the overlap at every shift of a window.

    Parameters
    ----------
    left_shape, right_shape : tuple of int
        Shapes of the two matrices, (rows, columns).
    window : ShiftWindow
    """

    def __init__(self, left_shape: tuple[int, int], right_shape: tuple[int, int], window: ShiftWindow) -> None:
        rows = axis_overlap(left_shape[0], right_shape[0], window.dys)
        columns = axis_overlap(left_shape[1], right_shape[1], window.dxs)
        self._left, self._right = (rows[0], columns[0]), (rows[1], columns[1])

    def of_left(self, images: Array) -> tuple[Array, Array]:
        """Return sums and sums of squares of left matrices (..., H, W): two float64 arrays (..., ny, nx)."""
        return _sums_and_squares(images, *self._left)

    def of_right(self, images: Array) -> tuple[Array, Array]:
        """Return sums and sums of squares of right matrices (..., H', W'): two float64 arrays (..., ny, nx)."""
        return _sums_and_squares(images, *self._right)


def _sums_and_squares(images: Array, rows: Bounds, columns: Bounds) -> tuple[Array, Array]:
    sums, squares = (_rectangle_sums(values, rows, columns) for values in (images, images * images))
    return sums, squares


def _rectangle_sums(values: Array, rows: Bounds, columns: Bounds) -> Array:
    """Sum over every rectangle that a row interval and a column interval make, in float64."""
    row_edges, column_edges = (np.unique(np.concatenate(bounds)) for bounds in (rows, columns))
    cells = _between_edges(_between_edges(values, row_edges, -2), column_edges, -1)
    table = cells.cumsum(axis=-2).cumsum(axis=-1)
    xp = array_namespace(values)
    (top, bottom), (first, last) = (
        (xp.asarray(np.searchsorted(edges, start)), xp.asarray(np.searchsorted(edges, stop)))
        for edges, (start, stop) in ((row_edges, rows), (column_edges, columns))
    )
    across = table[..., last] - table[..., first]
    return across[..., bottom, :] - across[..., top, :]


def _between_edges(values: Array, edges: NDArray[np.intp], axis: int) -> Array:
    """Sums along `axis` between neighbouring edges, after a leading zero: entry i ends at edge i."""
    xp = array_namespace(values)
    shape = list(values.shape)
    shape[axis] = edges.size
    cells = xp.zeros(shape)
    source, target = xp.moveaxis(values, axis, 0), xp.moveaxis(cells, axis, 0)
    for first, last in _runs_of_equal_gaps(edges):
        if edges[first + 1] - edges[first] == 1:
            target[first + 1 : last + 1] = source[edges[first] : edges[last]]
        else:
            for i in range(first, last):
                target[i + 1] = _sum_of_rows(source[edges[i] : edges[i + 1]])
    return cells


def _sum_of_rows(values: Array) -> Array:
    """Sum along the first axis in float64; float32 rows first in groups of 16, which is three times as fast."""
    grouped = values.shape[0] // _GROUP * _GROUP if values.dtype == np.float32 else 0
    groups = values[:grouped].reshape(-1, _GROUP, *values.shape[1:]).sum(axis=1)
    return groups.sum(axis=0, dtype=np.float64) + values[grouped:].sum(axis=0, dtype=np.float64)


def _runs_of_equal_gaps(edges: NDArray[np.intp]) -> Iterator[tuple[int, int]]:
    """Yield index pairs ``(first, last)`` between which neighbouring edges are equally far apart."""
    gaps = np.diff(edges)
    changes = np.flatnonzero(np.diff(gaps)) + 1
    bounds = [0, *changes.tolist(), gaps.size]
    if gaps.size:
        yield from pairwise(bounds)
