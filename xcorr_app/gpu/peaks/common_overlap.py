"""Scores around peaks over one overlap, of matrices in device memory: one launch for all pairs."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.summed_area import SummedAreaTables
from xcorr_app.gpu.runtime.arrays import dense, empty, is_device_array, placed
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.launch import WARP, Launch
from xcorr_app.gpu.runtime.types import WITH_DOUBLE, name_of

_WARPS = {3: 4, 15: 2}
"""By the shifts along an axis: of few the blocks are few too."""
_SUMS = 5


@functools.lru_cache(maxsize=256)
def common_overlap_launch(pairs: int, side: int, left: str, right: str) -> Launch:
    """Choose the launch for `side` x `side` shifts around each peak, of matrices of types as NumPy names them."""
    warps = _WARPS[side]
    defines: dict[str, str | int] = {
        "SIDE": side,
        "WARPS": warps,
        "LEFT_TYPE": WITH_DOUBLE[left],
        "RIGHT_TYPE": WITH_DOUBLE[right],
    }
    return Launch("peaks/common_overlap", defines, pairs * side * side, warps * WARP, 8 * _SUMS * warps)


def common_overlap(
    around: Any,
    lefts: Any,
    rights: Any,
    peaks: Any,
    problem: Problem,
    tables: tuple[SummedAreaTables, Any, Any],
) -> Any:
    """Scores (n, k, k) over the overlap at the peak (n, 2), from those `around` it, each over an overlap of its own.

    Peaks are on the host, or int32 on the device. `problem` is that of the tables: what makes them, those of the lefts
    and those of the rights.
    """
    makes, of_left, of_right = tables
    around = dense(around)
    scores = empty(around.shape, around.dtype)
    launch = common_overlap_launch(problem.pairs, around.shape[1], name_of(lefts.dtype), name_of(rights.dtype))
    lefts, rights = dense(lefts), dense(rights)
    places = peaks if is_device_array(peaks) else placed(np.ascontiguousarray(peaks, dtype=np.int32))
    arrays = around, lefts, rights, places, of_left, of_right, makes.rows, makes.columns, scores
    start(launch, arrays, (*problem.arguments(), *makes.sizes, 1))
    return scores
