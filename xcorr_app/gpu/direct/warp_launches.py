"""Launch parameters of the kernels whose workers are threads or warps, one shift or a few each."""

from __future__ import annotations

from collections.abc import Mapping

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.launch import WARP, Launch, Types, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits


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


def distributed(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    """As `warp_shuffle`, the rows of a shift split among workers."""
    warps = max(1, problem.pairs * _workers(problem, tuning) * ceil_div(problem.plane_shape[1], WARP))
    return _by_warp("warp_shuffle_distributed", types, tuning, warps, zero_first=True)


def combined_shuffle(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    """As `warp_shuffle`, several lefts, rights, shifts along y and left rows; as many as there are, and as fit."""
    lefts = min(4, problem.lefts) if problem.shared_rights else 1
    macros = {"LEFTS": lefts, "RIGHTS": min(4, problem.rights_per_left), "SHIFTS": 4, "LEFT_ROWS": 4, **tuning}
    if macros["LEFTS"] > 1 and not problem.shared_rights:
        raise ArgumentError("several lefts a thread need form n-to-m: every left has the same rights")
    return shuffled_tile("combined_shuffle", problem, types, macros)


_MAX_VALUES = 140
"""32-bit registers of a thread that sums, left and right elements may take; the others hold addresses."""


def shuffled_tile(
    kernel: str, problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits | None = None
) -> Launch:
    """Launch a kernel of ``shuffled_tile.cuh``: a warp for each group of matrices, 32 dx, worker of a group of dy."""
    lefts, rights, shifts, rows = (tuning.get(name, 1) for name in ("LEFTS", "RIGHTS", "SHIFTS", "LEFT_ROWS"))
    values = lefts * rights * shifts + 2 * lefts * rows + rights * (shifts + rows - 1)
    if values > _MAX_VALUES:
        raise ArgumentError(
            f"{lefts} lefts, {rights} rights, {shifts} shifts and {rows} left rows a thread do not fit its registers: "
            "give fewer"
        )
    groups = ceil_div(problem.lefts, lefts) * ceil_div(problem.rights_per_left, rights)
    warps = groups * _workers(problem, tuning, shifts) * ceil_div(problem.plane_shape[1], WARP)
    return _by_warp(kernel, types, tuning, max(1, warps), zero_first=tuning.get("DISTRIBUTION", 0) != 0)


def _workers(problem: Problem, tuning: Mapping[str, int], step: int = 1) -> int:
    """Workers of all groups of `step` shifts along y, as ``workers_of`` of ``distribution.cuh`` counts them."""
    groups, units = ceil_div(problem.plane_shape[0], step), ceil_div(tuning.get("MAX_ROWS", 1), step)
    (left, _), (right, _) = problem.left_shape, problem.right_shape
    if tuning.get("DISTRIBUTION", 0) == 0:
        return groups
    if tuning["DISTRIBUTION"] == 1:
        return groups * ceil_div(ceil_div(min(left, right + step - 1), step), units)
    shifts = (problem.first_shift[0] + group * step for group in range(groups))
    heights = (min(left, right + dy + step - 1) - max(0, dy) for dy in shifts)
    return sum(ceil_div(ceil_div(max(0, height), step), units) for height in heights)
