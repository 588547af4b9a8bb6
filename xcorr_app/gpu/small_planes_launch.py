"""Launch of the kernel that makes planes of small matrices, a pair in one block: a problem in; grid and defines out."""

from __future__ import annotations

from collections.abc import Mapping

from xcorr_app.gpu.correlation_problem import Problem
from xcorr_app.gpu.launch import WARP, DeviceLimits, Launch, ceil_div
from xcorr_app.gpu.small_matrices import (
    SCRATCH,
    are_small,
    blocks_at_once,
    defines_of,
    halves_floats,
    sums_floats,
    tables_floats,
)

__all__ = ["small_planes_launch"]

_TILES = 16
"""Tiles of 16 x 8 sums of a warp whose registers fit."""
_WARPS = (4, 8)
_THREADS_AT_ONCE = 512
"""On a multiprocessor, at 128 registers each."""


def small_planes_launch(
    problem: Problem,
    *,
    left_type: str,
    right_type: str,
    device: DeviceLimits,
    tuning: Mapping[str, int] | None = None,
) -> Launch | None:
    """Choose the launch that makes plain sums of small matrices on tensor cores, of halves of their values.

    Parameters
    ----------
    problem : Problem
        Any.
    left_type, right_type : str
        NumPy names of the matrices' types.
    device : DeviceLimits
        Whose shared memory holds a pair.
    tuning : mapping, optional
        Macro values that replace the table's.

    Returns
    -------
    Launch or None
        Kernel arguments: lefts, rights, planes, rights per left, rights. None where matrices have more than 64 rows or
        columns, or a block has no room for the window.
    """
    if not are_small(problem):
        return None
    tiles_y, tiles_x = ceil_div(problem.plane_shape[0], 8), ceil_div(problem.plane_shape[1], 16)
    warps = next((warps for warps in _WARPS if tiles_x * ceil_div(tiles_y, warps) <= _TILES), None)
    if warps is None:
        return None
    macros = {"M_TILES": tiles_x, "N_TILES": ceil_div(tiles_y, warps), "WARPS": warps, "STACKED": 1}
    macros |= tuning or {}
    shared_bytes = 4 * _floats(problem, macros)
    if shared_bytes > device.shared_bytes:
        return None
    blocks = _THREADS_AT_ONCE // (WARP * macros["WARPS"])
    macros.setdefault("MIN_BLOCKS", min(blocks, blocks_at_once(shared_bytes, device)))
    defines = defines_of(problem, left_type, right_type, macros)
    return Launch("correlation/small_planes", defines, problem.pairs, macros["WARPS"] * WARP, shared_bytes)


def _floats(problem: Problem, macros: Mapping[str, int]) -> int:
    """Shared memory of a block, as the kernel lays it out: tables, and behind them halves, then sums."""
    columns, rows = 16 * macros["M_TILES"], 8 * macros["WARPS"] * macros["N_TILES"]
    halves = halves_floats(problem, macros["STACKED"], columns)
    return SCRATCH + tables_floats(problem) + max(halves, sums_floats(rows, columns))
