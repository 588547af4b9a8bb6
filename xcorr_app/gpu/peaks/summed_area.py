"""Summed-area tables of matrices on the device, from which the sums over any overlap of a window follow."""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.overlap_edges import OverlapEdges, Strips
from xcorr_app.gpu.runtime.binder import BoundLaunch
from xcorr_app.gpu.runtime.constants import constants
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits, device_limits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.runtime.scratch import Scratch
from xcorr_app.gpu.runtime.types import WITH_DOUBLE

SMALL = 128 * 128
"""Pixels up to which one block makes a matrix's whole table."""
_STRIPS = (32, 16, 8)
"""Rows of a strip: the kernel takes 32 at most, and shorter ones leave more lines to be added up."""
_ROWS_AT_ONCE = 4
_COLUMNS = 4
"""Of a thread."""
_MAX_WARPS_OF_DOUBLES = 4
"""Whose rows in flight take half the shared memory that every device has."""


class SummedAreaTables:
    """Makes tables for matrices of fixed shapes and a fixed window of shifts."""

    def __init__(self, window: Problem) -> None:
        cupy = importlib.import_module("cupy")
        self.edges = edges = OverlapEdges.of(window)
        self.rows, self.columns = constants(cupy, lambda: (cupy.asarray(edges.rows), cupy.asarray(edges.columns)))
        self._left = _Side(cupy, edges.left_rows, edges.left_columns)
        self._right = _Side(cupy, edges.right_rows, edges.right_columns)
        self.sizes = edges.left_rows.size, edges.left_columns.size, edges.right_rows.size, edges.right_columns.size
        self.cells = self.sizes[0] * self.sizes[1], self.sizes[2] * self.sizes[3]

    def left(self, lefts: Any, canonical_batch: int = 0) -> Any:
        """Make the tables of left matrices (n, H, W), to be used any number of times.

        Sums are added in one order for all numbers of matrices that have one `canonical_batch`.
        """
        return self._left.tables(lefts, canonical_batch)

    def right(self, rights: Any, canonical_batch: int = 0) -> Any:
        """Make the tables of right matrices (n, H', W')."""
        return self._right.tables(rights, canonical_batch)


def tables_for(window: Problem) -> SummedAreaTables:
    """Return what makes tables on the current device, prepared once for a window: its batch does not matter."""
    return _tables_for(current_device(), replace(window, lefts=1, rights=1, rights_per_left=1))


@functools.lru_cache(maxsize=16)
def _tables_for(_device: int, window: Problem) -> SummedAreaTables:
    return SummedAreaTables(window)


@dataclass(frozen=True)
class _Large:
    """What is prepared for so many large matrices of a type."""

    start: BoundLaunch
    strips: tuple[Any, Any]
    scratch: Scratch


class _Side:
    """Makes the tables of the matrices of one side."""

    def __init__(self, cupy: Any, row_edges: NDArray[np.int32], column_edges: NDArray[np.int32]) -> None:
        self._cupy = cupy
        self._row_edges = row_edges
        self._height, self._width = int(row_edges[-1]), int(column_edges[-1])
        self._shape = row_edges.size, column_edges.size
        edge_of_column = np.full(self._width + 1, -1, np.int32)
        edge_of_column[column_edges] = np.arange(column_edges.size)
        there = constants(cupy, lambda: (cupy.asarray(row_edges), cupy.asarray(edge_of_column)))
        self._rows_on_device, self._edge_of_column = there
        self._small: dict[tuple[int, int, Any], BoundLaunch] = {}
        self._large: dict[tuple[int, int, Any], _Large] = {}

    def tables(self, images: Any, canonical_batch: int) -> Any:
        cupy, count, kind = self._cupy, images.shape[0], (images.shape[0], canonical_batch, images.dtype)
        rows, columns = self._shape
        tables = cupy.empty((count, rows, columns, 2))
        if self._height * self._width <= SMALL:
            if kind not in self._small:
                launch = small_table_launch(images.dtype.name, count)
                self._small[kind] = BoundLaunch.of(launch, (self._height, self._width, rows - 1, columns - 1))
            self._small[kind](images, self._rows_on_device, self._edge_of_column, tables)
            return tables
        if kind not in self._large:
            self._large[kind] = self._prepared(count, canonical_batch or count, images.dtype.name)
        large = self._large[kind]
        large.start(images, self._edge_of_column, *large.strips, *large.scratch(), tables)
        return tables

    def _prepared(self, count: int, canonical_batch: int, element: str) -> _Large:
        rows, columns = self._shape
        at_once = strip_rows(element, canonical_batch, self._height, device_limits(current_device()))
        strips = Strips.of(self._row_edges, at_once)
        strip_count, bands = strips.rows.shape[0], strips.edge_of_band.size
        launch = summed_area_launch(element, count, self._width, strip_count)
        numbers = (self._height, self._width, strip_count, bands, rows, columns - 1)
        asarray = self._cupy.asarray
        on_device = constants(self._cupy, lambda: (asarray(strips.rows), asarray(strips.edge_of_band)))
        scratch = Scratch((count * bands * (columns - 1) * 2, "float64"), counters=count)
        return _Large(BoundLaunch.of(launch, numbers), on_device, scratch)


def small_table_launch(element: str, images: int) -> Launch:
    """Choose the launch that makes the tables of small matrices."""
    threads = 128
    return Launch("peaks/small_summed_area", {"RIGHT_TYPE": WITH_DOUBLE[element], "THREADS": threads}, images, threads)


def strip_rows(element: str, images: int, height: int, device: DeviceLimits) -> int:
    """Rows of a strip at which every multiprocessor has two of them, if there are so many rows.

    How values of float64 are rounded, which check others, does not depend on the number of images.
    """
    if element == "float64":
        return _STRIPS[0]
    enough = (rows for rows in _STRIPS if images * ceil_div(height, rows) >= 2 * device.multiprocessors)
    return next(enough, _STRIPS[-1])


def summed_area_launch(element: str, images: int, width: int, strips: int) -> Launch:
    """Choose the launch that makes the tables of matrices of any size."""
    size = np.dtype(element).itemsize
    warps = next((count for count in (1, 2, 4) if width <= count * WARP * _COLUMNS), 8)
    warps = min(warps, _MAX_WARPS_OF_DOUBLES) if size == 8 else warps
    threads = warps * WARP
    of_thread = _COLUMNS * size
    kept_bytes = 2 * _ROWS_AT_ONCE * threads * of_thread + 16 * (2 * warps + 2 * max(_STRIPS) + threads) + 16
    macros = {"THREADS": threads, "ROWS_AT_ONCE": _ROWS_AT_ONCE}
    defines: dict[str, str | int] = {"RIGHT_TYPE": WITH_DOUBLE[element], **macros}
    return Launch("peaks/summed_area", defines, images * strips, threads, kept_bytes)
