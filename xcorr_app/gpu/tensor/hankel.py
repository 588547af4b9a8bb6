"""Launch parameters of the tensor-core kernel: a problem in; grid, defines and memory out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.launch import Launch, busy_segments, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.types import INPUT_TYPES

_MIN_ROWS = 16
"""Of a segment: each reads a window's rows of the fixed matrix before its first."""
_SMALL = 64
"""Columns up to which a block has two warps."""
_TILES = {
    1: ((1, 2), (1, 4), (1, 6), (1, 8), (2, 2), (2, 4), (2, 6), (2, 8), (3, 2), (3, 4)),
    2: ((1, 2), (1, 4), (1, 8), (2, 2)),
}
"""Tiles of 16 x 8 sums of a warp, along x and y, whose registers fit: by `split`."""
_OF_SMALL = ((3, 6),)
_WARPGROUP_TILES, _TILES_OF_THREE_GROUPS = 18, 8
"""Tiles of 16 x 8 sums whose registers fit, with two groups of four warps and with three."""
_CHAIN = 4096
"""Products of a warp that may add to one sum: each cuts off up to 2^-24 of it."""
_GROUP = 16
"""Segments that one block adds up."""
_WORK_BYTES = 80
_SOURCE_BYTES = 16


@dataclass(frozen=True)
class HankelLaunch:
    """The launch, and what it needs besides the problem's arrays.

    Attributes
    ----------
    launch : Launch
        Arguments: lefts, rights, planes, workspace, arrived, left tables, right tables, problem, cells of a left table,
        cells of a right table, then `Launch.extra`.
    counters : int
        Elements of `arrived`, int32, all zero; the launch leaves them so.
    workspace : int
        Elements of the workspace, float32.
    convert : Launch or None
        Where the fixed matrices are read in fp16: the launch that makes them so. Arguments: matrices, their tables, the
        fp16 copy, then height, width and cells of a table, and `Launch.extra`. The copy follows the rights among the
        arguments of the other launch.
    fp16_words : int
        Elements of the fp16 copy, uint32.
    """

    launch: Launch
    counters: int
    workspace: int
    convert: Launch | None = None
    fp16_words: int = 0


def moving_is_left(problem: Problem) -> bool:
    """Whether lefts move over the only right that there is, the fixed one; else rights move over the left they meet."""
    return problem.rights == 1 and problem.lefts > 1


def hankel_launch(
    problem: Problem,
    *,
    left_type: str = "float32",
    right_type: str = "float32",
    split: int = 1,
    warpgroup: bool = False,
    device: DeviceLimits | None = None,
    tuning: Mapping[str, int] | None = None,
) -> HankelLaunch:
    """Choose the launch that makes planes of centred sums on tensor cores."""
    device = device or DeviceLimits()
    left_moves = moving_is_left(problem)
    moving_shape, fixed_shape = problem.right_shape, problem.left_shape
    if left_moves:
        moving_shape, fixed_shape = fixed_shape, moving_shape
    if warpgroup:
        tile = _warpgroup_tile(problem, fixed_shape[1], device)
    else:
        tile = _warp_tile(problem, left_moves, split, device)
    macros = {**tile, **(tuning or {})}
    asked = macros.pop("SEGMENTS", 0)
    members = 4 if warpgroup else macros["TEAMS"]
    window_y, window_x = 8 * macros["N_TILES"], 16 * macros["M_TILES"]
    tiles_y, tiles_x = ceil_div(problem.plane_shape[0], window_y), ceil_div(problem.plane_shape[1], window_x)
    parts = _bundles(problem, members) * tiles_y * tiles_x
    segments = asked or busy_segments(
        _bundles(problem.for_choice, members) * tiles_y * tiles_x,
        macros["MIN_BLOCKS"] * device.multiprocessors,
        moving_shape[0] // _MIN_ROWS,
    )
    if not asked and not warpgroup and not macros["FLUSH"]:
        steps = ceil_div(moving_shape[0], macros["STEP_ROWS"]) * ceil_div(fixed_shape[1], macros["PANEL"])
        chained = steps * macros["PANEL"] * macros["STEP_ROWS"] // (16 * macros["WARPS"])
        segments = max(segments, min(ceil_div(chained, _CHAIN), moving_shape[0]))
    segment_rows = max(1, ceil_div(moving_shape[0], segments))
    segments = ceil_div(moving_shape[0], segment_rows)
    types: dict[str, str | int] = {
        "LEFT_TYPE": INPUT_TYPES[left_type],
        "RIGHT_TYPE": INPUT_TYPES[right_type],
        "MOVING_IS_LEFT": int(left_moves),
    }
    extra: tuple[int, ...] = (tiles_y, tiles_x, segments, segment_rows)
    convert, fp16_words = None, 0
    if warpgroup:
        kernel, threads, shared = "hankel_warpgroup", 128 * macros["WARPS"], _warpgroup_bytes(macros)
        pitch = ceil_div(fixed_shape[1], 8) * 4
        fixed = problem.rights if left_moves else problem.lefts
        convert = _convert(right_type if left_moves else left_type, fixed, fixed_shape[0], pitch)
        fp16_words, extra = fixed * fixed_shape[0] * pitch, (*extra, pitch)
    else:
        kernel, threads, shared = "hankel", 32 * macros["TEAMS"] * macros["WARPS"], _warp_bytes(macros, split)
        types["SPLIT"] = split
    launch = Launch(
        f"tensor/{kernel}", {**types, **macros}, parts * segments, threads, shared, extra, segments=segments
    )
    counters, workspace = shared_sums(parts, segments, members * window_y * window_x)
    return HankelLaunch(launch, counters, workspace, convert, fp16_words)


def _bundles(problem: Problem, members: int) -> int:
    """Blocks of so many moving matrices that one fixed matrix meets."""
    if moving_is_left(problem):
        return ceil_div(problem.pairs, members)
    return problem.lefts * ceil_div(problem.rights_per_left, members)


def shared_sums(parts: int, segments: int, sums: int) -> tuple[int, int]:
    """Count what blocks need to add up the segments of a part."""
    if segments == 1:
        return 1, 1
    groups = ceil_div(segments, _GROUP)
    return parts * (groups + 1), parts * (segments + groups) * sums


def _convert(element: str, matrices: int, height: int, pitch: int) -> Launch:
    threads = 256
    blocks = ceil_div(height * pitch // 2, threads)
    defines: dict[str, str | int] = {"RIGHT_TYPE": INPUT_TYPES[element], "THREADS": threads}
    return Launch("tensor/to_fp16", defines, matrices * blocks, threads, extra=(pitch, blocks))


def _warp_tile(problem: Problem, left_moves: bool, split: int, device: DeviceLimits) -> dict[str, int]:
    height, width = problem.plane_shape
    columns = (problem.right_shape if left_moves else problem.left_shape)[1]
    small = columns <= _SMALL

    def cost(tile: tuple[int, int]) -> float:
        m_tiles, n_tiles = tile
        return ceil_div(width, 16 * m_tiles) * ceil_div(height, 8 * n_tiles) * (m_tiles * n_tiles + m_tiles + n_tiles)

    m_tiles, n_tiles = min((*_TILES[split], *(_OF_SMALL if small and split == 1 else ())), key=cost)
    together = problem.for_choice.pairs if left_moves else problem.for_choice.rights_per_left
    few = split == 1 and m_tiles <= 2 and n_tiles <= 4
    shape = {"M_TILES": m_tiles, "N_TILES": n_tiles, "FLUSH": int(split > 1)}
    if small:
        return {**shape, "TEAMS": 1, "WARPS": 2, "STEP_ROWS": 2, "PANEL": _SMALL, "MIN_BLOCKS": 6}
    teams = 2 if together > 1 else 1
    panel = 256 if columns > 128 else 128
    macros = {**shape, "TEAMS": teams, "WARPS": 8 // teams, "STEP_ROWS": 4, "PANEL": panel}
    while _warp_bytes(macros, split) > device.shared_bytes:
        macros["PANEL"] //= 2
    return {**macros, "MIN_BLOCKS": 3 if few else 2}


def _warpgroup_tile(problem: Problem, fixed_width: int, device: DeviceLimits) -> dict[str, int]:
    height, width = problem.plane_shape
    n_tiles = min(range(1, 9), key=lambda tiles: (ceil_div(height, 8 * tiles) * (tiles + 0.5), -tiles))
    max_m = min(3, _WARPGROUP_TILES // n_tiles)
    m_tiles = min(range(1, max_m + 1), key=lambda tiles: (ceil_div(width, 16 * tiles) * (tiles + 0.5), -tiles))
    warps = 3 if m_tiles * n_tiles <= _TILES_OF_THREE_GROUPS else 2
    macros = {"M_TILES": m_tiles, "N_TILES": n_tiles, "WARPS": warps, "STEP_ROWS": 24, "PANEL": 512, "MIN_BLOCKS": 1}
    while macros["PANEL"] > 128 and (
        fixed_width <= macros["PANEL"] * 3 // 4 or _warpgroup_bytes(macros) > device.shared_bytes
    ):
        macros["PANEL"] //= 2
    return macros


def moving_words(macros: Mapping[str, int]) -> int:
    """Words of a row of a moving matrix: two copies."""
    moving_float4s = macros["PANEL"] // 4 + 4 * macros["M_TILES"] + 1
    return 2 * ((2 * moving_float4s + 15) // 32 * 32 + 16)


def _warp_bytes(macros: Mapping[str, int], split: int) -> int:
    """Bytes of a block of ``hankel``, as the kernel lays them out."""
    members, step = macros["TEAMS"], macros["STEP_ROWS"]
    moving_float4s, fixed_float4s = macros["PANEL"] // 4 + 4 * macros["M_TILES"] + 1, macros["PANEL"] // 4
    fixed_words = (macros["PANEL"] // 2 + 31) // 32 * 32 + 4
    ring = 8 * macros["N_TILES"] + 2 * step
    raw = 4 * step * (members * moving_float4s + fixed_float4s)
    staged = raw + split * (2 * members * step * moving_words(macros) + ring * fixed_words)
    return block_bytes(macros, members, staged)


def _warpgroup_bytes(macros: Mapping[str, int]) -> int:
    """Bytes of a block of ``hankel_warpgroup``."""
    columns = macros["STEP_ROWS"] + 8 * macros["N_TILES"] - 1
    moving_rows = 4 * macros["WARPS"]
    return block_bytes(macros, 4, 2 * (moving_rows * moving_words(macros) + macros["PANEL"] // 8 * 4 * columns))


def block_bytes(macros: Mapping[str, int], members: int, staged: int) -> int:
    """Bytes of a block that stages so many words and has so many moving matrices."""
    sums = 128 * macros["M_TILES"] * macros["N_TILES"] * members
    exchanged = max(1, macros["WARPS"] // 2) * sums
    return _WORK_BYTES + _SOURCE_BYTES * (members + 1) + 4 * max(staged, exchanged)
