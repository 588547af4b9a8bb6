"""Launch of the kernel that makes planes of small matrices, each in one block: a problem in; grid and defines out."""

from __future__ import annotations

from collections.abc import Mapping

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor.small_matrices import (
    are_small,
    blocks_at_once,
    defines_of,
    row_float4s,
    table_floats,
    totals_floats,
)

__all__ = ["small_planes_launch"]

_TILES = 16
"""Tiles of 16 x 8 sums of a warp whose registers fit."""
_SHARED_TILES = {1: 16, 2: 12}
"""The same of all rights that share fragments, by the fp16 numbers of a value: both are in registers at once."""
_MIN_WARPS, _MAX_WARPS = 4, 8
_THREADS_AT_ONCE = 512
"""On a multiprocessor, at 128 registers each."""
_RIGHTS = (4, 2)
"""That a block may take at once, most of all first."""
_HELD = 64
"""Elements that a thread holds in registers on their way, at most."""


def small_planes_launch(
    problem: Problem,
    *,
    left_type: str,
    right_type: str,
    device: DeviceLimits,
    split: int = 1,
    tuning: Mapping[str, int] | None = None,
) -> Launch | None:
    """Choose the launch that makes plain sums of small matrices on tensor cores, in fp16 or split fp16."""
    if not are_small(problem):
        return None
    tiles_y, tiles_x = ceil_div(problem.plane_shape[0], 8), ceil_div(problem.plane_shape[1], 16)
    if tiles_x * split > _TILES:
        return None
    # Of a full plane the outer tiles have the fewest rows: two in turn, half the plane apart, have as many as any two.
    warps = min(_MAX_WARPS, max(_MIN_WARPS, tiles_y if tiles_y < _MAX_WARPS else ceil_div(tiles_y, 2)))
    macros = {"M_TILES": tiles_x, "SPLIT": split, "WARPS": warps, "RIGHTS": 1}
    for rights in _RIGHTS:
        more = macros | {"RIGHTS": rights}
        fits = rights * tiles_x * split <= _SHARED_TILES[split] and _held(problem, more) <= _HELD
        if fits and _are_worth_it(problem, rights, device) and 4 * _floats(problem, more) <= device.shared_bytes:
            macros = more
            break
    macros |= tuning or {}
    shared_bytes = 4 * _floats(problem, macros)
    if shared_bytes > device.shared_bytes:
        return None
    blocks = max(1, _THREADS_AT_ONCE // (WARP * macros["WARPS"]))
    macros.setdefault("MIN_BLOCKS", min(blocks, blocks_at_once(shared_bytes, device)))
    defines = defines_of(problem, left_type, right_type, macros)
    grid = problem.lefts * ceil_div(problem.rights_per_left, macros["RIGHTS"])
    return Launch("tensor/small_planes", defines, grid, macros["WARPS"] * WARP, shared_bytes)


def _are_worth_it(problem: Problem, rights: int, device: DeviceLimits) -> bool:
    """Whether few blocks have a right too few, and every multiprocessor has two blocks."""
    per_left = problem.rights_per_left
    blocks_per_left = ceil_div(per_left, rights)
    missing = blocks_per_left * rights - per_left
    return 16 * missing <= per_left and problem.lefts * blocks_per_left >= 2 * device.multiprocessors


def _held(problem: Problem, macros: Mapping[str, int]) -> int:
    """Elements that a thread holds."""
    shapes = problem.left_shape, *[problem.right_shape] * macros["RIGHTS"]
    threads = WARP * macros["WARPS"]
    return sum(4 * ceil_div(height, threads // row_float4s(width)) for height, width in shapes)


def _floats(problem: Problem, macros: Mapping[str, int]) -> int:
    """Shared memory of a block, as the kernel lays it out: what warps agree by, tables, fp16 copies."""
    rights, warps = macros["RIGHTS"], macros["WARPS"]
    scratch = 4 * (1 + rights) * warps
    (left_height, left_width), (right_height, right_width) = problem.left_shape, problem.right_shape
    first_dx, steps = problem.first_shift[1], ceil_div(right_width, 16)
    first = max(0, ceil_div(-30 - first_dx, 16))
    past = min(max(0, ceil_div(left_width - first_dx, 16)), steps + macros["M_TILES"] - 1)
    of_left = left_height * (16 * max(1, past - first) + 20)
    of_right = (right_height + 14) * (ceil_div(steps, 2) * 16 + 4)
    fp16 = macros["SPLIT"] * (of_left + rights * of_right)
    shapes = problem.left_shape, *[problem.right_shape] * rights
    tables = sum(max(table_floats(shape), totals_floats(shape, warps)) for shape in shapes)
    return scratch + tables + fp16
