"""Launches of the kernels that make tables of rectangle sums: matrices' sizes in; grids, defines and memory out."""

from __future__ import annotations

import numpy as np

from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.types import INPUT_TYPES

__all__ = ["SMALL", "overlap_sums_launch", "small_table_launch", "strip_rows"]

SMALL = 128 * 128
"""Pixels up to which one block makes a matrix's whole table."""
_STRIPS = (32, 16, 8)
"""Rows of a strip: the kernel takes 32 at most, and shorter ones leave more lines to be added up."""
_ROWS_AT_ONCE = 4
_COLUMNS = 4
"""Of a thread."""


def small_table_launch(element: str, images: int) -> Launch:
    """Choose the launch that makes the tables of small matrices.

    Parameters
    ----------
    element : str
        NumPy name of the matrices' type.
    images : int
        Number of matrices.

    Returns
    -------
    Launch
        Kernel arguments: images, row edges, edge of each column, tables, height, width, bands, column cells.
    """
    threads = 128
    return Launch("peaks/small_summed_area", {"RIGHT_TYPE": INPUT_TYPES[element], "THREADS": threads}, images, threads)


def strip_rows(images: int, height: int, device: DeviceLimits) -> int:
    """Rows of a strip at which every multiprocessor has two of them, if there are so many rows."""
    enough = (rows for rows in _STRIPS if images * ceil_div(height, rows) >= 2 * device.multiprocessors)
    return next(enough, _STRIPS[-1])


def overlap_sums_launch(element: str, images: int, width: int, strips: int) -> Launch:
    """Choose the launch that makes the tables of matrices of any size.

    Parameters
    ----------
    element : str
        NumPy name of the matrices' type.
    images, width : int
        Number of matrices, and their columns.
    strips : int
        Strips of each matrix.

    Returns
    -------
    Launch
        Kernel arguments: images, edge of each column, `Strips.rows`, `Strips.edge_of_band`, cells (a pair of float64
        for every matrix, band and column cell), a zero of int32 for every matrix (and zero again at the end), tables,
        height, width, strips, bands, row edges, column cells.
    """
    warps = next((count for count in (1, 2, 4) if width <= count * WARP * _COLUMNS), 8)
    threads = warps * WARP
    quad = _COLUMNS * np.dtype(element).itemsize
    kept_bytes = 2 * _ROWS_AT_ONCE * threads * quad + 16 * (2 * warps + 2 * max(_STRIPS) + threads) + 16
    macros = {"THREADS": threads, "ROWS_AT_ONCE": _ROWS_AT_ONCE}
    defines: dict[str, str | int] = {"RIGHT_TYPE": INPUT_TYPES[element], **macros}
    return Launch("peaks/summed_area", defines, images * strips, threads, kept_bytes)
