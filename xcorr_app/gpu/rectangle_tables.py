"""Tables of rectangle sums of matrices on the device, from which the sums over any overlap of a window follow."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.compile import kernel_function
from xcorr_app.gpu.correlation_problem import Problem
from xcorr_app.gpu.launch import Launch
from xcorr_app.gpu.overlap_edges import OverlapEdges
from xcorr_app.gpu.peak_launch import SMALL, moment_launches

__all__ = ["RectangleTables", "start"]


def start(launch: Launch, arrays: tuple[Any, ...], numbers: tuple[int, ...]) -> None:
    """Start a launch on arrays and integers.

    Parameters
    ----------
    launch : Launch
        Compiled for the current device where it was not before.
    arrays : tuple of cupy.ndarray
        The kernel's pointers.
    numbers : tuple of int
        Its other arguments, 32 bits each.
    """
    function = kernel_function(launch.kernel, launch.defines, launch.shared_bytes)
    arguments = (*arrays, *(np.int32(number) for number in numbers))
    function((launch.blocks,), (launch.threads,), arguments, shared_mem=launch.shared_bytes)


class RectangleTables:
    """Makes tables for matrices of fixed shapes and a fixed window of shifts.

    Parameters
    ----------
    window : Problem
        Shapes and window; its batch does not matter.

    Attributes
    ----------
    edges : OverlapEdges
        Where overlaps begin and end.
    rows, columns : cupy.ndarray of int32, shape (shifts, 5)
        The edges of every shift, on the device.
    """

    def __init__(self, window: Problem) -> None:
        self._cupy = cupy = importlib.import_module("cupy")
        self.edges = edges = OverlapEdges.of(window)
        self._left_edges = _on_device(cupy, edges.left_rows, edges.left_columns)
        self._right_edges = _on_device(cupy, edges.right_rows, edges.right_columns)
        self.rows, self.columns = cupy.asarray(edges.rows), cupy.asarray(edges.columns)

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Number of edges: left rows, left columns, right rows, right columns."""
        edges = self.edges
        return edges.left_rows.size, edges.left_columns.size, edges.right_rows.size, edges.right_columns.size

    @property
    def cells(self) -> tuple[int, int]:
        """Elements of a left table and of a right table."""
        left_rows, left_columns, right_rows, right_columns = self.sizes
        return left_rows * left_columns, right_rows * right_columns

    def left(self, lefts: Any) -> Any:
        """Make the tables of left matrices (n, H, W), to be used any number of times."""
        return self._tables(lefts, *self._left_edges)

    def right(self, rights: Any) -> Any:
        """Make the tables of right matrices (n, H', W')."""
        return self._tables(rights, *self._right_edges)

    def _tables(self, images: Any, row_edges: Any, column_edges: Any, edge_of_column: Any) -> Any:
        cupy = self._cupy
        count, height, width = images.shape
        bands, cells = row_edges.size - 1, column_edges.size - 1
        launches = moment_launches(str(images.dtype), count, bands)
        tables = cupy.empty((count, bands + 1, cells + 1, 2))
        numbers = (height, width, bands, cells)
        if height * width <= SMALL:
            start(launches.small, (images, row_edges, edge_of_column, tables), numbers)
            return tables
        of_cells = cupy.empty((count, bands, cells, 2))
        start(launches.sums, (images, row_edges, column_edges, of_cells), numbers)
        start(launches.table, (of_cells, tables), (bands, cells))
        return tables


def _on_device(cupy: Any, row_edges: NDArray[np.int32], column_edges: NDArray[np.int32]) -> tuple[Any, Any, Any]:
    """Row edges, column edges, and for every column from 0 to the width which edge it is, or -1."""
    edge_of_column = np.full(column_edges[-1] + 1, -1, np.int32)
    edge_of_column[column_edges] = np.arange(column_edges.size)
    return cupy.asarray(row_edges), cupy.asarray(column_edges), cupy.asarray(edge_of_column)
