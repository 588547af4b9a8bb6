"""Launches of the kernels that make summed-area tables: matrices' sizes in; grids, defines and memory out."""

from __future__ import annotations

import numpy as np

from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits
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
