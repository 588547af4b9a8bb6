"""Launch parameters of the kernels that keep a tile of shifts, or of products, in registers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.direct.tuning import combined_tile, row_product_shape, segment_count
from xcorr_app.gpu.runtime.launch import WARP, Launch, Types, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits


def combined(problem: Problem, types: Types, tuning: Mapping[str, int], device: DeviceLimits) -> Launch:
    """Choose everything about ``combined`` from the tables."""
    return combined_launch(problem, types, combined_tile(problem) | dict(tuning), device)


def combined_launch(
    problem: Problem,
    types: Types,
    macros: Mapping[str, int],
    device: DeviceLimits,
    *,
    kernel: str = "direct/combined",
    extra_bytes: int = 0,
) -> Launch:
    """Choose grid, segments and staging of ``combined`` or of its kin for a given tile."""
    macros = dict(macros)
    asked = macros.pop("SEGMENTS", 0)
    block_x, block_y = macros["TILE_X"] * macros["WARPS_X"], macros["TILE_Y"] * macros["WARPS_Y"]
    if macros["WARPS_X"] > 1 and macros["TILE_X"] % 4:
        raise ArgumentError(f"TILE_X = {macros['TILE_X']} must be a multiple of 4 where WARPS_X is more than 1")
    tiles = ceil_div(problem.plane_shape[0], block_y) * ceil_div(problem.plane_shape[1], block_x)
    rows = min(problem.left_shape[0], problem.right_shape[0] + block_y - 1)
    wanted = asked or segment_count(problem, tiles, rows, device.multiprocessors)
    segment_rows = ceil_div(rows, wanted)
    segments = ceil_div(rows, segment_rows)
    while (floats := _staged_floats(macros, block_x, block_y)) * 4 + extra_bytes > device.shared_bytes:
        longer = max(("CHUNK_ROWS", "CHUNK_COLUMNS"), key=lambda name: macros[name])
        macros[longer] = macros[longer] // 8 * 4
        if macros[longer] < 4:
            raise ArgumentError(f"a tile of {block_y} x {block_x} shifts needs more shared memory than the device has")
    warps = macros["WARPS_X"] * macros["WARPS_Y"] * macros["WARPS_K"]
    exchange = 4 * warps * macros["TILE_X"] * macros["TILE_Y"] if macros["WARPS_K"] > 1 else 0
    return Launch(
        kernel,
        {**types, **macros},
        problem.pairs * tiles * segments,
        warps * WARP,
        max(4 * floats, exchange) + extra_bytes,
        extra=(segments, segment_rows),
        segments=segments,
        block_y=block_y,
    )


def _staged_floats(macros: Mapping[str, int], block_x: int, block_y: int) -> int:
    """Return the size of the tiles of ``combined``: its LEFT_COLUMNS and RIGHT_ROWS."""
    rows, columns = macros["CHUNK_ROWS"], macros["CHUNK_COLUMNS"]
    return rows * ((columns + block_x + 6) // 4 * 4) + (rows + block_y - 1) * columns


def row_product(problem: Problem, types: Types, tuning: Mapping[str, int], _: DeviceLimits) -> Launch:
    """Choose pieces, blocks and, where offsets of odd parity exist, the second launch of ``row_product``."""
    is_float = types["LEFT_TYPE"] == types["RIGHT_TYPE"] == "float"
    macros = row_product_shape(problem, is_float=is_float) | dict(tuning)
    block, pairs, shift_rows = macros["BLOCK"], macros["PAIRS"], macros["SHIFT_ROWS"]
    groups = ceil_div(max(problem.left_shape[0], problem.right_shape[0]), shift_rows)
    one_piece = max(problem.left_shape[1], problem.right_shape[1]) <= block
    macros["STORE"] = int(one_piece)
    if pairs not in (1, 2, 4, 8):
        raise ArgumentError(f"PAIRS = {pairs} must be 1, 2, 4 or 8")
    macros["WHOLE"] = int(max(problem.left_shape[0], problem.right_shape[0]) <= macros["CHUNK_ROWS"])
    rows = 2 * macros["CHUNK_ROWS"] + (0 if macros["WHOLE"] else shift_rows - 1)
    pair_floats = ceil_div(rows * (block + 4), 32) * 32 + 32 // min(pairs, 8)
    largest_offset = max(ceil_div(problem.left_shape[1], block), ceil_div(problem.right_shape[1], block)) - 1
    even = Launch(
        "direct/row_product",
        {**types, **macros},
        ceil_div(problem.pairs, pairs) * groups * (2 * (largest_offset // 2) + 1),
        pairs * shift_rows,
        4 * pairs * pair_floats,
        extra=(0,),
        zero_first=not (one_piece and problem.within_full_plane()),
    )
    if largest_offset == 0:
        return even
    odd_blocks = ceil_div(problem.pairs, pairs) * groups * (2 * ((largest_offset + 1) // 2))
    return replace(even, then=replace(even, blocks=odd_blocks, extra=(1,), zero_first=False))


def sum_of_segments(launch: Launch, problem: Problem) -> Launch:
    """Return the launch that adds up the planes that the segments of `launch` leave in a workspace."""
    defines = {name: launch.defines[name] for name in ("LEFT_TYPE", "RIGHT_TYPE", "SUM_TYPE")}
    threads, (height, width) = 256, problem.plane_shape
    blocks = problem.pairs * ceil_div(height * width, threads)
    defines |= {"THREADS": threads, "BLOCK_Y": launch.block_y}
    return Launch("direct/sum_segments", defines, blocks, threads, extra=launch.extra)
