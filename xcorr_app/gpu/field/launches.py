"""How the kernels that fit fields are compiled and started."""

from __future__ import annotations

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.field.problem import TILE_ROWS, FieldProblem
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div

__all__ = [
    "READ",
    "alike_launch",
    "compare_launch",
    "filter_launch",
    "levels_launch",
    "linear_scatter_launch",
    "linear_sums_launch",
    "patch_match_launch",
    "patch_trust_launch",
    "slope_launch",
    "step_bytes",
    "step_launch",
    "summary_launch",
]

READ = {
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "int16": "short",
    "float32": "float",
    "float64": "double",
}
"""Types of frames that are filtered."""
COMPARED, SLOPES, LINEAR = 15, 33, 42
"""Sums that are left of a tile."""
SCATTERED, SQUARE = 44, 16
"""Sums that are left of a square, and its pixels a side."""
_THREADS, _STEP_THREADS, _FILTER_THREADS = 128, 256, 256
_RIM = 2
_FILTER_TILE = 32, 64
_LINEAR_COLUMNS = 64
_MAX_BLOCKS = 2**31 - 1
_MAX_SHIFTS, _SHARED = 625, 96 * 1024
"""Shifts of a patch, of which a lane holds some, and bytes of shared memory that blocks of most devices may have."""


def compare_launch(problem: FieldProblem) -> Launch:
    """Frames looked at through their fields, and sums of what they show."""
    return _of_tiles("field/compare_frames", problem, _warps() * COMPARED)


def slope_launch(problem: FieldProblem) -> Launch:
    """Sums of what is left of the frames times the slopes of the reference."""
    return _of_tiles("field/slope_sums", problem, _warps() * SLOPES)


def alike_launch(problem: FieldProblem) -> Launch:
    """Sums of the products of neighbouring residuals."""
    return _of_tiles("field/alike_sums", problem, (TILE_ROWS + 2 * _RIM) * (problem.columns + 2 * _RIM) + _warps())


def levels_launch(problem: FieldProblem) -> Launch:
    """Gain of every frame and offset of every node."""
    return Launch("field/field_levels", {"THREADS": _THREADS}, problem.count, _THREADS, 8 * _warps())


def step_launch(problem: FieldProblem, near: float) -> Launch:
    """One step of Gauss-Newton for every frame."""
    shared_bytes = step_bytes(problem.nodes, problem.splines)
    defines: dict[str, str | int] = {"THREADS": _STEP_THREADS, "NEAR": str(near)}
    return Launch("field/field_step", defines, problem.count, _STEP_THREADS, shared_bytes)


def step_bytes(nodes: tuple[int, int], splines: tuple[int, int]) -> int:
    """Bytes of shared memory that a step needs for a field of so many nodes and coefficients along its axes."""
    numbers = 2 * nodes[0] * nodes[1]
    room = max(numbers, 2 * splines[0] * splines[1])
    return 8 * (_warps(_STEP_THREADS) + 2 * numbers + 2 * room) + 8 * numbers


def summary_launch(frames: int, nodes: int) -> Launch:
    """Medians and means of the fields of so many frames."""
    return Launch("field/field_summary", {}, frames, _THREADS, 8 * (2 * nodes + 6 + 2 * _THREADS))


def filter_launch(
    shape: tuple[int, int],
    count: int,
    dtype: str,
    radius: int,
    *,
    full: bool = True,
    half: bool = False,
    centres: bool = False,
    spline: bool = False,
) -> Launch:
    """Frames under a filter of so many pixels a side, at full size, at half, or both; radius 0 only halves.

    `spline`: the filter is that which gives the coefficients of cubic splines, begun so many pixels away.
    """
    if dtype not in READ:
        raise ArgumentError(f"frames of {dtype} are not read: give {', '.join(READ)}")
    tiles = tuple(ceil_div(size, tile) for size, tile in zip(shape, _FILTER_TILE, strict=True))
    rows, wide = _FILTER_TILE[0] + 2 * radius, _FILTER_TILE[1] + 2 * radius + 1
    defines: dict[str, str | int] = {
        "RIGHT_TYPE": READ[dtype],
        "RADIUS": radius,
        "FULL": int(full),
        "HALF": int(half),
        "CENTRES": int(centres),
        "SPLINE": int(spline),
    }
    blocks, shared_bytes = tiles[0] * tiles[1] * count, 4 * rows * (wide + _FILTER_TILE[1] + 1)
    return Launch("field/filter_frames", defines, blocks, _FILTER_THREADS, shared_bytes, tiles)


def patch_match_launch(patches: int, side: int, shifts: int, *, room_bytes: int = _SHARED) -> Launch | None:
    """So many patches of so many pixels a side, looked for at shifts x shifts; None where a block cannot hold them.

    It may have `room_bytes` of shared memory, or what most devices have.
    """
    large, values = side + shifts - 1, shifts * shifts
    groups = _THREADS // shifts
    if not groups or values > _MAX_SHIFTS or patches > _MAX_BLOCKS:
        return None
    room = side * (side | 1) + groups * values
    if 2 * shifts * large > room:
        return None
    shared_bytes = 4 * (large * (large | 1) + room + 2 * values + 8)
    defines: dict[str, str | int] = {"SIDE": side, "SHIFTS": shifts}
    return (
        Launch("field/patch_match", defines, patches, _THREADS, shared_bytes)
        if shared_bytes <= min(room_bytes, _SHARED)
        else None
    )


def patch_trust_launch(frames: int, patches: int, *, field: bool) -> Launch:
    """Which patches of so many frames are trusted; a field through them, or where to look for the others."""
    return Launch("field/patch_trust", {"FIELD": int(field)}, frames, _THREADS, 8 * patches)


def linear_sums_launch(shape: tuple[int, int], items: int) -> Launch:
    """Sums of so many motions, each of a frame."""
    tiles = ceil_div(shape[0], TILE_ROWS), ceil_div(shape[1], _LINEAR_COLUMNS)
    defines: dict[str, str | int] = {"COLUMNS": _LINEAR_COLUMNS, "THREADS": _THREADS}
    shared_bytes = 4 * _warps() * LINEAR
    return Launch("field/linear_sums", defines, items * tiles[0] * tiles[1], _THREADS, shared_bytes, tiles)


def linear_scatter_launch(shape: tuple[int, int], items: int) -> Launch:
    """Sums over squares, a warp each."""
    squares = ceil_div(shape[0], SQUARE), ceil_div(shape[1], SQUARE)
    blocks = ceil_div(items * squares[0] * squares[1], _warps())
    return Launch("field/linear_scatter", {"THREADS": _THREADS}, blocks, _THREADS, extra=squares)


def _of_tiles(kernel: str, problem: FieldProblem, shared: int) -> Launch:
    blocks = problem.count * problem.tiles
    if blocks > _MAX_BLOCKS:
        raise ArgumentError(f"{problem} is more than one launch can have")
    defines: dict[str, str | int] = {"COLUMNS": problem.columns, "THREADS": _THREADS}
    return Launch(kernel, defines, blocks, _THREADS, 4 * shared)


def _warps(threads: int = _THREADS) -> int:
    return threads // WARP
