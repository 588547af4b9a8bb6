"""Launch of the kernel that finds the peaks of small matrices, all in one block: a problem in; grid and defines out."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor.small_matrices import (
    SCRATCH,
    are_small,
    blocks_at_once,
    defines_of,
    fp16_floats,
    has_one_table,
    sums_floats,
    table_floats,
    totals_floats,
)

__all__ = ["small_hankel_launch"]

_TILES = 16
"""Tiles of 16 x 8 sums of a warp whose registers fit."""
_WARPS = (4, 8)
_REGISTERS = {4: 88, 2: 96}
"""Of sums and fragments, by the rows that are multiplied at once; the others hold addresses and what is read next."""
_SPARE = 8
_THREADS, _MORE_THREADS, _FEWER_THREADS = 512, 768, 384
"""On a multiprocessor: at 128 registers each, or 80; or 168, where four warps make two tables of wide matrices."""
_FEW_REGISTERS = 56
"""Of sums and fragments, where the kernel for narrow matrices needs no more than 80."""
_MIN_TILES = 8
"""Of a warp, where the window is shared by more warps than must."""
_KEPT = SCRATCH + 32
"""Floats by which warps agree, with rivals and norms."""
_NEAR = 25


def small_hankel_launch(
    problem: Problem,
    *,
    left_type: str,
    right_type: str,
    device: DeviceLimits,
    tuning: Mapping[str, int] | None = None,
) -> Launch | None:
    """Launch what finds peaks of plain sums of small matrices; None where a block has no room for them."""
    if not are_small(problem):
        return None
    found = ((warps, _parts(problem.plane_shape, warps)) for warps in _WARPS)
    warps, parts = next(((warps, parts) for warps, parts in found if parts), (0, {}))
    if not parts:
        return None
    macros = {"WARPS": warps, "STACKED": _stacked(problem, parts), **parts, **(tuning or {})}
    shared_bytes = 4 * _floats(problem, macros)
    if shared_bytes > device.shared_bytes:
        return None
    blocks = _threads(problem, macros) // (WARP * macros["WARPS"])
    macros.setdefault("MIN_BLOCKS", min(blocks, blocks_at_once(shared_bytes, device)))
    defines = defines_of(problem, left_type, right_type, macros)
    return Launch("tensor/small_hankel", defines, problem.pairs, macros["WARPS"] * WARP, shared_bytes)


def _parts(plane_shape: tuple[int, int], warps: int) -> dict[str, int]:
    """How warps share the window's tiles: nothing if they do not hold them all.

    Warps with tiles of their own leave no sums to be added up by the search: as many as get enough of them, else as few
    as hold them all. A column of shifts that would have tiles for itself is left to the kernel's other way.
    """
    tiles_y, tiles_x = ceil_div(plane_shape[0], 8), ceil_div(plane_shape[1], 16)
    whole = plane_shape[1] // 16
    if whole > 0 and plane_shape[1] % 16 == 1 and tiles_y * whole <= _TILES:
        return {"PARTS_Y": 1, "PARTS_X": 1, "N_TILES": tiles_y, "M_TILES": whole, "LONE_COLUMN": 1}
    found = []
    for parts_y, parts_x in itertools.product((1, 2, 4, 8), repeat=2):
        n_tiles, m_tiles = ceil_div(tiles_y, parts_y), ceil_div(tiles_x, parts_x)
        if parts_y * parts_x <= warps and n_tiles * m_tiles <= _TILES:
            macros = {"PARTS_Y": parts_y, "PARTS_X": parts_x, "N_TILES": n_tiles, "M_TILES": m_tiles, "LONE_COLUMN": 0}
            parts = parts_y * parts_x
            own = parts == warps and n_tiles * m_tiles >= _MIN_TILES
            order = (not own, parts, parts * n_tiles * m_tiles, m_tiles + n_tiles, m_tiles)
            found.append((order, macros))
    return min(found, key=lambda entry: entry[0])[1] if found else {}


def _threads(problem: Problem, macros: Mapping[str, int]) -> int:
    """Threads that a multiprocessor is to have at once."""
    if _is_narrow(problem) and not macros["LONE_COLUMN"] and _registers(macros, 2) <= _FEW_REGISTERS:
        return _MORE_THREADS
    narrow = min(problem.left_shape[1], problem.right_shape[1]) <= WARP
    return _THREADS if narrow or macros["WARPS"] > min(_WARPS) or has_one_table(problem) else _FEWER_THREADS


def _is_narrow(problem: Problem) -> bool:
    """Whether the fragments of a row are read at once."""
    return problem.right_shape[1] <= WARP


def _stacked(problem: Problem, parts: Mapping[str, int]) -> int:
    """Rows that are multiplied at once: as many as registers hold; four only where that adds no rows of zeros."""
    rows = problem.left_shape[0]
    narrow = _is_narrow(problem)
    one_part = not narrow and parts["PARTS_X"] == 1
    if one_part and ceil_div(rows, 32) * 32 == ceil_div(rows, 16) * 16 and _registers(parts, 4) <= _REGISTERS[4]:
        return 4
    spare = _SPARE if narrow else 0
    return 2 if _registers(parts, 2) <= _REGISTERS[2] + spare else 1


def _registers(parts: Mapping[str, int], stacked: int) -> int:
    """Of sums and fragments."""
    return 4 * (parts["M_TILES"] * parts["N_TILES"] + stacked * (parts["M_TILES"] + 1))


def _floats(problem: Problem, macros: Mapping[str, int]) -> int:
    """Shared memory of a block, as the kernel lays it out: tables, then fp16, then sums lie in the same place."""
    shifts_y = problem.plane_shape[0]
    columns, rows = 16 * macros["PARTS_X"] * macros["M_TILES"], 8 * macros["PARTS_Y"] * macros["N_TILES"]
    fp16 = fp16_floats(problem, macros["STACKED"], columns)
    if macros["LONE_COLUMN"]:
        last_dy = problem.first_shift[0] + shifts_y - 1
        fp16 += macros["WARPS"] * 16 * 8 * (ceil_div(shifts_y + 15 + -last_dy % 8, 8) | 1)
    sums = macros["WARPS"] // (macros["PARTS_Y"] * macros["PARTS_X"]) * sums_floats(rows, columns)
    near = 2 * _NEAR * macros["WARPS"]
    shapes = (problem.left_shape,) if has_one_table(problem) else (problem.left_shape, problem.right_shape)
    tables = sum(table_floats(shape) + totals_floats(shape, macros["WARPS"]) for shape in shapes)
    return _KEPT + shifts_y * (columns + 4) + 4 + max(tables, fp16, sums, near)
