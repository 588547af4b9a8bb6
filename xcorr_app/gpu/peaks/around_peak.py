"""Correlation at the shifts around a peak from its definition, on a device, where it checks a registration."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.launch import WARP, Launch

__all__ = ["SIDE", "around_peak_launch", "scores_around_peaks"]

SIDE = 5
"""Shifts around a peak along each axis, itself in the middle."""
_KINDS = 5
"""Sums that a score follows from."""
_WARPS = 4


def around_peak_launch(pairs: int) -> Launch:
    """Choose the launch for so many pairs."""
    threads, shifts = _WARPS * WARP, SIDE * SIDE
    shared_bytes = 8 * (_WARPS * (shifts + _KINDS - 1) + threads // shifts * shifts * _KINDS)
    return Launch("peaks/around_peak", {"WARPS": _WARPS}, pairs, threads, shared_bytes)


def scores_around_peaks(lefts: Any, rights: Any, peaks: NDArray[np.integer], fewest: int) -> NDArray[np.float64]:
    """Zero-mean normalised correlation (n, 5, 5) at the shifts around each peak; NaN of fewer pixels than `fewest`."""
    cupy = importlib.import_module("cupy")
    count, height, width = rights.shape
    scores = cupy.empty((count, SIDE, SIDE))
    arrays = cupy.ascontiguousarray(lefts), cupy.ascontiguousarray(rights), cupy.asarray(peaks, dtype=np.int32), scores
    start(around_peak_launch(count), arrays, (lefts.shape[0], height, width, fewest))
    found: NDArray[np.float64] = scores.get()
    return found
