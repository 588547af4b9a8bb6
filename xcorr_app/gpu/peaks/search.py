"""Launch parameters of the kernels that find peaks: a problem in; grids, defines and memory out."""

from __future__ import annotations

import math
from collections.abc import Mapping

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.direct.tile_launches import combined_launch
from xcorr_app.gpu.direct.tuning import window_tile
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.types import INPUT_TYPES

__all__ = ["RECORD", "peak_launch", "plane_peak_launch", "uncentre_launch"]

RECORD = 29
"""Numbers a peak's record holds: row and column in the plane, value, highest rival, the 5 x 5 values around."""

_SCRATCH = 64
"""Floats by which the threads of a block agree on a peak."""
_SCORE_BYTES = 96
"""What the threads of a block share of how shifts are scored."""
_FEW_SHIFTS = 2048


def plane_peak_launch(
    problem: Problem, *, normalize: bool, device: DeviceLimits, centred: tuple[bool, bool] | None = None
) -> Launch | None:
    """Choose the launch that finds the peak of planes of sums; None where a plane does not fit shared memory.

    Parameters
    ----------
    problem : Problem
        Any.
    normalize : bool
        Whether scores are zero-mean normalised, or the sums themselves.
    device : DeviceLimits
        Whose shared memory holds the scores.
    centred : tuple of bool, optional
        Given where the planes hold sums of centred products: whether left and right are of integers, whose centres are
        whole numbers. Plain scores then need the tables too.

    Returns
    -------
    Launch or None
        Ready to compile and start.
    """
    shared_bytes = 4 * (_SCRATCH + problem.plane_shape[0] * problem.plane_shape[1]) + _SCORE_BYTES
    if shared_bytes > device.shared_bytes:
        return None
    shifts = problem.plane_shape[0] * problem.plane_shape[1]
    warps = 4 if shifts <= _FEW_SHIFTS else 8
    if problem.pairs <= device.multiprocessors:  # each has a plane of its own, and room for all threads
        warps = next((count for count in (4, 8, 16) if shifts <= count * WARP), 32)
    defines: dict[str, str | int] = {"WARPS": warps, "NORMALIZE": int(normalize)}
    if centred is not None:
        defines |= {"CENTRED": 1, **_integers(centred)}
    return Launch("peaks/plane_peak", defines, problem.pairs, warps * 32, shared_bytes)


def uncentre_launch(problem: Problem, centred: tuple[bool, bool]) -> Launch:
    """Choose the launch that turns planes of sums of centred products into plain sums, in place.

    Parameters
    ----------
    problem : Problem
        Any whose pairs times shifts stay below 2^31.
    centred : tuple of bool
        Whether left and right are of integers.

    Returns
    -------
    Launch
        Kernel arguments: planes, then as for `plane_peak_launch` without records.
    """
    threads = 256
    blocks = problem.pairs * ceil_div(problem.plane_shape[0] * problem.plane_shape[1], threads)
    return Launch("tensor/uncentre", {"THREADS": threads, **_integers(centred)}, blocks, threads)


def _integers(centred: tuple[bool, bool]) -> dict[str, str | int]:
    return {"LEFT_INTEGER": int(centred[0]), "RIGHT_INTEGER": int(centred[1])}


def peak_launch(
    problem: Problem,
    *,
    normalize: bool,
    left_type: str,
    right_type: str,
    device: DeviceLimits,
    tuning: Mapping[str, int] | None = None,
) -> Launch | None:
    """Choose the launch that sums, normalises and searches a window without writing its plane.

    Parameters
    ----------
    problem : Problem
        Any.
    normalize : bool
        Whether scores are zero-mean normalised, or the sums themselves.
    left_type, right_type : str
        NumPy names of the matrices' types.
    device : DeviceLimits
        Decides how finely few pairs are cut, and whether the window fits one block.
    tuning : mapping, optional
        Macro values that replace the table's.

    Returns
    -------
    Launch or None
        None where the window is larger than one block covers.
    """
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
    segments = _segments(problem.pairs, tile["MIN_BLOCKS"] * device.multiprocessors, problem.left_shape[0])
    macros = {**tile, "SEGMENTS": segments, **(tuning or {})}
    return combined_launch(problem, types, macros, device, kernel="direct/combined_peak", extra_bytes=extra_bytes)


def _segments(pairs: int, slots: int, rows: int) -> int:
    """Number of segments of the rows at which `slots` blocks at a time are busy to the end, the smallest if several."""
    if pairs >= 8 * slots:
        return 1

    def cost(segments: int) -> float:
        share = pairs * segments / slots
        return math.ceil(share) / share * (1 + 0.01 * segments)

    return min(range(1, max(1, min(rows // 8, 64)) + 1), key=cost)
