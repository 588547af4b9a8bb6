"""Correlation at the shifts around a peak from its definition, on a device, where it checks a registration."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import dense, empty, placed
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.launch import WARP, Launch

SIDE = 5
"""Shifts around a peak along each axis, itself in the middle."""
_KINDS = 5
"""Sums that a score follows from."""
_FEWEST_WARPS, _MAX_WARPS = 4, 16
_COLUMNS_A_THREAD = 2


@functools.lru_cache(maxsize=256)
def around_peak_launch(pairs: int, width: int) -> Launch:
    """Choose the launch for so many pairs of matrices of a width.

    Threads by the width alone: how sums are rounded must not depend on the number of pairs.
    """
    warps = min(max(width // (_COLUMNS_A_THREAD * WARP), _FEWEST_WARPS), _MAX_WARPS)
    threads, shifts = warps * WARP, SIDE * SIDE
    shared_bytes = 8 * (warps * (shifts + _KINDS - 1) + threads // shifts * shifts * _KINDS)
    return Launch("peaks/around_peak", {"WARPS": warps}, pairs, threads, shared_bytes)


def started_scores(lefts: Any, rights: Any, peaks: NDArray[np.integer], fewest: int) -> Any:
    """Zero-mean normalised correlation (n, 5, 5) at the shifts around each peak, on its way.

    NaN of fewer pixels than `fewest`.
    """
    count, height, width = rights.shape
    scores = empty((count, SIDE, SIDE))
    arrays = dense(lefts), dense(rights), placed(peaks, dtype=np.int32), scores
    start(around_peak_launch(count, width), arrays, (lefts.shape[0], height, width, fewest))
    return scores
