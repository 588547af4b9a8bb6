"""Launch parameters of the kernels that find peaks: a problem in; grids, defines and memory out."""

from __future__ import annotations

import functools

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.direct.tile_launches import combined_launch
from xcorr_app.gpu.direct.tuning import window_tile
from xcorr_app.gpu.runtime.launch import WARP, Launch, busy_segments
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.types import INPUT_TYPES

RECORD = 29
"""Numbers a peak's record holds: row and column in the plane, value, highest rival, the 5 x 5 values around."""

_SCRATCH = 64
"""Floats by which the threads of a block agree on a peak."""
_SCORE_BYTES = 96
"""What the threads of a block share of how shifts are scored."""
_FEW_SHIFTS = 2048
_MIN_ROWS = 8
"""Of a segment."""


@functools.lru_cache(maxsize=256)
def plane_peak_launch(
    problem: Problem, *, normalize: bool, device: DeviceLimits, centred: tuple[bool, bool] | None = None
) -> Launch | None:
    """Choose the launch that finds the peak of planes of sums; None where a plane does not fit shared memory."""
    shared_bytes = 4 * (_SCRATCH + problem.plane_shape[0] * problem.plane_shape[1]) + _SCORE_BYTES
    if shared_bytes > device.shared_bytes:
        return None
    shifts = problem.plane_shape[0] * problem.plane_shape[1]
    warps = 4 if shifts <= _FEW_SHIFTS else 8
    if problem.for_choice.pairs <= device.multiprocessors:  # each has a plane of its own, and room for all threads
        warps = next((count for count in (4, 8, 16) if shifts <= count * WARP), 32)
    defines: dict[str, str | int] = {"WARPS": warps, "NORMALIZE": int(normalize)}
    if centred is not None:
        defines |= {"CENTRED": 1, **integer_macros(centred)}
    return Launch("peaks/plane_peak", defines, problem.pairs, warps * 32, shared_bytes)


@functools.lru_cache(maxsize=64)
def finds_peaks(plane_shape: tuple[int, int], device: DeviceLimits) -> bool:
    """Whether the scores of a plane of this size fit the shared memory of a block."""
    problem = Problem((1, 1), (1, 1), (0, 0), plane_shape)
    return plane_peak_launch(problem, normalize=True, device=device) is not None


def integer_macros(centred: tuple[bool, bool]) -> dict[str, str | int]:
    """Macros that say whether lefts and rights are of integers, whose centres are whole numbers."""
    return {"LEFT_INTEGER": int(centred[0]), "RIGHT_INTEGER": int(centred[1])}


@functools.lru_cache(maxsize=256)
def peak_launch(
    problem: Problem,
    *,
    normalize: bool,
    left_type: str,
    right_type: str,
    device: DeviceLimits,
    segments: int = 0,
) -> Launch | None:
    """Choose the launch that sums, normalises and searches a window without writing its plane."""
    tile = window_tile(problem)
    if tile is None:
        return None
    shifts = problem.plane_shape[0] * problem.plane_shape[1]
    extra_bytes = 4 * (_SCRATCH + 2 * (-(-shifts // 4) * 4))
    types: dict[str, str | int] = {
        "LEFT_TYPE": INPUT_TYPES[left_type],
        "RIGHT_TYPE": INPUT_TYPES[right_type],
        "SUM_TYPE": "float",
        "NORMALIZE": int(normalize),
    }
    slots = tile["MIN_BLOCKS"] * device.multiprocessors
    busy = busy_segments(problem.for_choice.pairs, slots, problem.left_shape[0] // _MIN_ROWS)
    macros = {**tile, "SEGMENTS": segments or busy}
    return combined_launch(problem, types, macros, device, kernel="direct/combined_peak", extra_bytes=extra_bytes)
