"""Where overlaps begin and end: the rows and columns that cut a matrix into cells for summed areas."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.direct.problem import Problem

Indices = NDArray[np.intp]
Bounds = tuple[Indices, Indices]

_BAND = 32
"""Most rows between two row edges: what one warp of ``small_table`` adds up."""


def axis_overlap(left_size: int, right_size: int, shifts: Indices) -> tuple[Bounds, Bounds]:
    """Half-open bounds of the overlap along one axis, for `left` and for `right`; empty overlaps get equal bounds."""
    start = np.clip(-shifts, 0, right_size)
    stop = np.clip(left_size - shifts, start, right_size)
    empty = stop <= start
    return (np.where(empty, 0, start + shifts), np.where(empty, 0, stop + shifts)), (start, stop)


@dataclass(frozen=True)
class OverlapEdges:
    """Edges of the cells of both matrices of a problem, and which of them belong to each shift.

    Attributes
    ----------
    left_rows, left_columns, right_rows, right_columns : ndarray of int32
        Edges from 0 to the size of the axis; row edges at least every 32 rows.
    rows, columns : ndarray of int32, shape (shifts, 5)
        For every shift along y and x: indices of the left's first and last edge, of the right's, and how many rows or
        columns overlap.
    """

    left_rows: NDArray[np.int32]
    left_columns: NDArray[np.int32]
    right_rows: NDArray[np.int32]
    right_columns: NDArray[np.int32]
    rows: NDArray[np.int32]
    columns: NDArray[np.int32]

    @classmethod
    def of(cls, problem: Problem) -> OverlapEdges:
        """Return the edges of a problem's window."""
        edges, shifts = [], []
        for axis in (0, 1):
            first, count = problem.first_shift[axis], problem.plane_shape[axis]
            sizes = problem.left_shape[axis], problem.right_shape[axis]
            left, right = axis_overlap(*sizes, np.arange(first, first + count))
            left_edges, right_edges = (
                _edges(bounds, size, _BAND if axis == 0 else size)
                for bounds, size in zip((left, right), sizes, strict=True)
            )
            edges.append((left_edges, right_edges))
            indices = [np.searchsorted(left_edges, bound) for bound in left]
            indices += [np.searchsorted(right_edges, bound) for bound in right]
            shifts.append(np.stack([*indices, right[1] - right[0]], axis=1).astype(np.int32))
        (left_rows, right_rows), (left_columns, right_columns) = edges
        return cls(left_rows, left_columns, right_rows, right_columns, *shifts)


@dataclass(frozen=True)
class Strips:
    """How the blocks of ``overlap_sums`` share the rows of a matrix.

    Attributes
    ----------
    rows : ndarray of int32, shape (strips, 4)
        First row, end, first band, and a bit for every row after which a band ends: rows that no edge parts.
    edge_of_band : ndarray of int32, shape (bands,)
        Which row edge a band ends at, or -1.
    """

    rows: NDArray[np.int32]
    edge_of_band: NDArray[np.int32]

    @classmethod
    def of(cls, row_edges: NDArray[np.int32], longest: int) -> Strips:
        """Return strips of at most `longest` rows (32 at most) for a matrix with these edges.

        The end of a band takes a block about as long as four rows do, so a strip has fewer bands than rows.
        """
        starts = row_edges.astype(np.intp)
        bands = _edges((starts, starts), int(row_edges[-1]), longest)
        strips, first = [], 0
        while first < bands.size - 1:
            last = int(np.searchsorted(bands, bands[first] + longest, side="right")) - 1
            last = min(last, first + max(1, longest // 2))
            ends = sum(1 << int(row - bands[first] - 1) for row in bands[first + 1 : last + 1])
            strips.append((bands[first], bands[last], first, ends))
            first = last
        edge_of_band = np.full(bands.size - 1, -1, np.int32)
        edge_of_band[np.searchsorted(bands, row_edges[1:]) - 1] = np.arange(1, row_edges.size)
        return cls(np.array(strips, np.int64).astype(np.uint32).view(np.int32), edge_of_band)


def _edges(bounds: Bounds, size: int, longest: int) -> NDArray[np.int32]:
    """All bounds in order, with further edges where a gap is longer than `longest`."""
    edges = np.unique(np.concatenate([*bounds, [0, size]]))
    pieces = np.append(0, np.cumsum(-(-np.diff(edges) // longest)))
    return np.asarray(np.interp(np.arange(pieces[-1] + 1), pieces, edges) + 1e-6, dtype=np.int32)
