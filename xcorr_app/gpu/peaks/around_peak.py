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
_WARPS = 4


def around_peak_launch(pairs: int) -> Launch:
    """Choose the launch for so many pairs."""
    threads, shifts = _WARPS * WARP, SIDE * SIDE
    shared_bytes = 8 * (_WARPS * (shifts + _KINDS - 1) + threads // shifts * shifts * _KINDS)
    return Launch("peaks/around_peak", {"WARPS": _WARPS}, pairs, threads, shared_bytes)


def sums_around_peaks(lefts: Any, rights: Any, peaks: NDArray[np.integer]) -> NDArray[np.float64]:
    """Sums (5, n, 5, 5) of f, f^2, g, g^2 and f g over the overlaps at the 5 x 5 shifts around each peak."""
    cupy = importlib.import_module("cupy")
    count, height, width = rights.shape
    sums = cupy.empty((_KINDS, count, SIDE, SIDE))
    arrays = cupy.ascontiguousarray(lefts), cupy.ascontiguousarray(rights), cupy.asarray(peaks, dtype=np.int32), sums
    start(around_peak_launch(count), arrays, (lefts.shape[0], height, width, count))
    found: NDArray[np.float64] = sums.get()
    return found
