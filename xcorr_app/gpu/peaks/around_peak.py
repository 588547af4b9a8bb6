"""Sums over the overlaps around a shift from their definition, on a device, where they check a registration."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.launch import WARP, Launch

__all__ = ["SIDE", "around_peak_launch", "sums_around_peaks"]

SIDE = 5
"""Shifts around a peak along each axis, itself in the middle."""
_KINDS = 5
_WARPS = 8


def around_peak_launch(pairs: int) -> Launch:
    """Choose the launch for so many pairs."""
    return Launch("peaks/around_peak", {"WARPS": _WARPS}, pairs * SIDE, _WARPS * WARP, 8 * _WARPS * SIDE * _KINDS)


def sums_around_peaks(lefts: Any, rights: Any, peaks: NDArray[np.integer]) -> NDArray[np.float64]:
    """Sum over the overlaps at the 5 x 5 shifts around each peak."""
    cupy = importlib.import_module("cupy")
    count, height, width = rights.shape
    sums = cupy.empty((count, SIDE, SIDE, _KINDS))
    arrays = cupy.ascontiguousarray(lefts), cupy.ascontiguousarray(rights), cupy.asarray(peaks, dtype=np.int32), sums
    start(around_peak_launch(count), arrays, (lefts.shape[0], height, width))
    found: NDArray[np.float64] = sums.get()
    return found
