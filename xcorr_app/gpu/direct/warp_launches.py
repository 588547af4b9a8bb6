"""Launch parameters of the kernels whose workers are threads or warps, one shift or a few each."""

from __future__ import annotations

from collections.abc import Mapping

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.launch import WARP, Launch, Types, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits

__all__ = [
    "distributed",
    "multi_left_right",
    "multi_right",
    "multi_row",
    "overlap_wise",
    "row_per_warp",
    "shift_per_warp",
    "warp_shuffle",
]


def overlap_wise(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    """A thread sums one shift alone."""
    shifts = problem.plane_shape[0] * problem.plane_shape[1]
    threads = tuning["THREADS"]
    blocks = ceil_div(problem.pairs * shifts, threads)
    return Launch("direct/overlap_wise", {**types, **tuning}, blocks, threads)


def shift_per_warp(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    """A warp sums one shift, its lanes striding over the overlap."""
    shifts = problem.plane_shape[0] * problem.plane_shape[1]
    per_block = tuning["SHIFTS_PER_BLOCK"]
    blocks = ceil_div(problem.pairs * shifts, per_block)
    return Launch("direct/shift_per_warp", {**types, **tuning}, blocks, per_block * WARP)


def _by_warp(kernel: str, types: Types, tuning: Mapping[str, int], warps: int, *, zero_first: bool = False) -> Launch:
    """Launch a kernel whose tasks are warps, ``WARPS`` of them a block."""
    per_block = tuning["WARPS"]
    blocks = ceil_div(warps, per_block)
    return Launch(f"direct/{kernel}", {**types, **tuning}, blocks, per_block * WARP, zero_first=zero_first)


def warp_shuffle(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    """A warp sums 32 neighbouring shifts and passes left values from lane to lane."""
    height, width = problem.plane_shape
    return _by_warp("warp_shuffle", types, tuning, problem.pairs * height * ceil_div(width, WARP))


def row_per_warp(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    """A block sums 32 neighbouring shifts, its warps sharing the rows."""
    height, width = problem.plane_shape
    rows = min(problem.left_shape[0], problem.right_shape[0])
    warps = {"WARPS": next((count for count in (1, 2, 4, 8) if rows <= count), 16), **tuning}["WARPS"]
    sum_floats = 2 if types["SUM_TYPE"] == "double" else 1
    return Launch(
        "direct/row_per_warp",
        {**types, "WARPS": warps},
        problem.pairs * height * ceil_div(width, WARP),
        warps * WARP,
        4 * warps * (96 + WARP * sum_floats),
    )


def distributed(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    """As `warp_shuffle`, the rows of a shift split among workers."""
    (height, width), rows = problem.plane_shape, tuning["MAX_ROWS"]
    if tuning["DISTRIBUTION"] == 0:
        workers = height
    elif tuning["DISTRIBUTION"] == 1:
        workers = height * ceil_div(min(problem.left_shape[0], problem.right_shape[0]), rows)
    else:
        workers = sum(ceil_div(overlap, rows) for overlap in problem.overlaps(0))
    warps = max(1, problem.pairs * workers * ceil_div(width, WARP))
    return _by_warp("warp_shuffle_distributed", types, tuning, warps, zero_first=True)


def multi_right(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    """As `warp_shuffle`, several rights against one left value."""
    height, width = problem.plane_shape
    groups = problem.lefts * ceil_div(problem.rights_per_left, tuning["RIGHTS"])
    return _by_warp("multi_right", types, tuning, groups * height * ceil_div(width, WARP))


def multi_left_right(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    """As `warp_shuffle`, several lefts against several rights."""
    height, width = problem.plane_shape
    groups = ceil_div(problem.lefts, tuning["LEFTS"]) * ceil_div(problem.rights_per_left, tuning["RIGHTS"])
    return _by_warp("multi_left_right", types, tuning, groups * height * ceil_div(width, WARP))


def multi_row(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    """As `warp_shuffle`, several neighbouring shifts along y."""
    height, width = problem.plane_shape
    return _by_warp(
        "multi_row", types, tuning, problem.pairs * ceil_div(height, tuning["SHIFTS"]) * ceil_div(width, WARP)
    )
