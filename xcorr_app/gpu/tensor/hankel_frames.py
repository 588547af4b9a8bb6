"""Launch parameters of the tensor-core kernel for many frames against one reference: a problem in; launches out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.launch import Launch, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.types import INPUT_TYPES
from xcorr_app.gpu.tensor.hankel import moving_is_left

FRAMES = 64
"""Rows of a product."""
_SIZES = (8, 11, 16, 17, 24, 32)
"""Numbers of ey of a tile."""
_KINDS = ((2, 32, 4, 1, 5.1), (3, 17, 2, 4, 4.5), (3, 24, 2, 2, 6.1), (4, 17, 2, 2, 6.1), (5, 11, 2, 4, 4.9))
"""Of tiles: groups of eight ex, largest ey, sets of producer warps, warps of a set, as a block's registers hold
them; and how long a tile takes at least, as long as so many of 16 x 8 shifts in ``hankel_warpgroup``."""
_EACH = 0.01
"""How much longer for every eight shifts: little, as producing rows takes as long as the products, or longer."""
_TUNING = {"PANEL": 64, "FRAME_BUFFERS": 4}
_CHAIN = 2048
"""Products that may add to one sum: each cuts off up to 2^-23 of it."""
_MIN_ROWS = 32
"""Of a piece: each leaves its sums in the workspace."""


@dataclass(frozen=True)
class FramesLaunch:
    """Three launches, one after the other, and the memory between them.

    Attributes
    ----------
    expand : Launch
        Makes the Hankel-expanded fp16 copy of the references. Arguments: references, their tables, the copy, then
        height, width and cells of a table, and `Launch.extra`.
    products : Launch
        Arguments: lefts, rights, the copy, the workspace, left tables, right tables, problem, cells of a left table,
        cells of a right table, then `Launch.extra`.
    sums : Launch
        Arguments: the workspace, planes, left tables, right tables, then as `products`.
    hankel_words, workspace : int
        Elements of the copy, uint32, and of the workspace, float32.
    """

    expand: Launch
    products: Launch
    sums: Launch
    hankel_words: int
    workspace: int


def frames_launch(
    problem: Problem,
    *,
    left_type: str = "float32",
    right_type: str = "float32",
    device: DeviceLimits | None = None,
    tuning: Mapping[str, int] | None = None,
) -> FramesLaunch:
    """Choose the launches that make planes of centred sums of many frames against one reference."""
    device = device or DeviceLimits()
    of_left = moving_is_left(problem)
    frame_shape, one_shape = problem.right_shape, problem.left_shape
    if of_left:
        frame_shape, one_shape = one_shape, frame_shape
    rows, columns = problem.plane_shape
    macros = {**_TUNING, **_tile(rows, columns, tuning or {})}
    macros |= tuning or {}
    asked = macros.pop("SEGMENTS", 0)
    tiles_y, tiles_x = ceil_div(rows, macros["N_TILES"]), ceil_div(columns, 8 * macros["EX_TILES"])
    ones = 1 if of_left else problem.lefts
    parts, chosen = (_bundles(batch, of_left) * tiles_y * tiles_x for batch in (problem, problem.for_choice))
    panels = ceil_div(frame_shape[1], macros["PANEL"])
    segments = asked or _segments(chosen * panels, device.multiprocessors, frame_shape[0], macros["PANEL"])
    segment_rows = ceil_div(frame_shape[0], segments)
    segments = ceil_div(frame_shape[0], segment_rows)
    threads, pieces = 128 * macros["EX_TILES"], panels * segments
    producers = 32 * macros["SETS"] * macros["SET_WARPS"]
    defines: dict[str, str | int] = {
        "LEFT_TYPE": INPUT_TYPES[left_type],
        "RIGHT_TYPE": INPUT_TYPES[right_type],
        "FRAMES_ARE_LEFT": int(of_left),
    }
    products = Launch(
        "tensor/hankel_frames",
        {**defines, **macros},
        parts * pieces,
        threads + producers,
        _shared_bytes(macros),
        (tiles_y, tiles_x, panels, segments, segment_rows),
        segments=pieces,
    )
    tile = {name: macros[name] for name in ("N_TILES", "EX_TILES")}
    sums = Launch(
        "tensor/sum_frames",
        {**defines, **tile},
        parts * macros["N_TILES"],
        threads,
        extra=(tiles_y, tiles_x, pieces),
    )
    expand = _expand(right_type if of_left else left_type, ones, one_shape)
    hankel_words = 4 * ones * one_shape[0] * (one_shape[1] + 7)
    return FramesLaunch(expand, products, sums, hankel_words, parts * pieces * threads * 4 * macros["N_TILES"])


def _bundles(problem: Problem, of_left: bool) -> int:
    """Times of 64 frames against one reference."""
    return ceil_div(problem.pairs, FRAMES) if of_left else problem.lefts * ceil_div(problem.rights_per_left, FRAMES)


def _tile(rows: int, columns: int, tuning: Mapping[str, int]) -> dict[str, int]:
    """Shifts that a block sums, groups of eight ex and number of ey, and its producer warps."""
    allowed = [(groups, size) for groups, most, *_ in _KINDS for size in _SIZES if size <= most]
    if "EX_TILES" in tuning and "N_TILES" in tuning:
        allowed = [(tuning["EX_TILES"], tuning["N_TILES"])]

    def cost(tile: tuple[int, int]) -> float:
        groups, size = tile
        return ceil_div(rows, size) * ceil_div(columns, 8 * groups) * tile_time(groups, size)

    groups, size = min(allowed, key=cost)
    _, _, sets, set_warps, _ = _kind(groups, size)
    return {"EX_TILES": groups, "N_TILES": size, "SETS": sets, "SET_WARPS": set_warps}


def tile_time(groups: int, size: int) -> float:
    """Time of a tile of so many groups of eight ex, and so many ey."""
    return _kind(groups, size)[-1] + groups * size * _EACH


def _kind(groups: int, size: int) -> tuple[int, int, int, int, float]:
    fitting = (kind for kind in _KINDS if kind[0] == groups and size <= kind[1])
    return next(fitting, (groups, size, 1, 4, 0.0))


def _expand(element: str, matrices: int, shape: tuple[int, int]) -> Launch:
    threads = 256
    blocks = ceil_div(shape[0] * (shape[1] + 7), threads)
    defines: dict[str, str | int] = {"RIGHT_TYPE": INPUT_TYPES[element], "THREADS": threads}
    return Launch("tensor/to_fp16_hankel", defines, matrices * blocks, threads, extra=(blocks,))


def _segments(parts: int, slots: int, rows: int, panel: int) -> int:
    """Number of segments of the rows at which as many blocks are busy to the end as may be, the smallest if several."""
    fewest = ceil_div(rows * panel, 16 * _CHAIN)

    def cost(segments: int) -> float:
        share = parts * segments / slots
        return math.ceil(share) / share * (1 + 0.01 * segments)

    return min(range(fewest, max(fewest, min(rows // _MIN_ROWS, 64)) + 1), key=cost)


def _shared_bytes(macros: Mapping[str, int]) -> int:
    """Bytes of a block of ``hankel_frames``, as the kernel lays them out."""
    met, buffers = macros["N_TILES"] - 1, macros["FRAME_BUFFERS"]
    rows = 2 * met + buffers + macros["SETS"]
    columns = macros["PANEL"] + 8 * (macros["EX_TILES"] - 1)
    chunk = 16 * FRAMES + (32 if macros["PANEL"] < 64 else 16)  # as the kernel pads its stores
    return 16 * (2 + FRAMES + buffers + rows * columns) + buffers * macros["PANEL"] // 8 * chunk
