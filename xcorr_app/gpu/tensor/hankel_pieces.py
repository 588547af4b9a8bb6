"""Launch parameters of the tensor-core kernel for few pairs, of which a block takes one piece."""

from __future__ import annotations

from collections.abc import Mapping

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.types import INPUT_TYPES
from xcorr_app.gpu.tensor.hankel import HankelLaunch, block_bytes, moving_words, shared_sums

__all__ = ["pieces_launch"]

_PIECES = ((64, 128, 16), (32, 128, 8), (16, 128, 8))
"""Rows, columns and warps of a piece, the largest first: each reads a window's rows and columns besides."""
_TILES = ((1, 2), (1, 4), (1, 6), (1, 8), (2, 2), (2, 4), (2, 6), (2, 8), (3, 2), (3, 4))
"""Tiles of 16 x 8 sums of a warp, along x and y, whose registers fit."""
_RESIDENT = 16
"""Warps that a multiprocessor has room for."""
_WAVES = 4
"""Of so many warps; where there are more, blocks that walk down long segments read less."""
_NARROW = 64
"""Columns up to which whole rows are small pieces."""


def pieces_launch(
    problem: Problem,
    *,
    left_type: str = "float32",
    right_type: str = "float32",
    device: DeviceLimits | None = None,
    tuning: Mapping[str, int] | None = None,
) -> HankelLaunch | None:
    """Choose the launch that makes planes of centred sums of few pairs on tensor cores; the rights slide."""
    device = device or DeviceLimits()
    height, columns = problem.right_shape[0], problem.left_shape[1]
    if columns <= _NARROW and not tuning:
        return None
    rows_of_window, columns_of_window = problem.plane_shape

    def cost(tile: tuple[int, int]) -> float:
        m_tiles, n_tiles = tile
        tiles = ceil_div(columns_of_window, 16 * m_tiles) * ceil_div(rows_of_window, 8 * n_tiles)
        return tiles * (m_tiles * n_tiles + m_tiles + n_tiles)

    m_tiles, n_tiles = min(_TILES, key=cost)
    macros = {"M_TILES": m_tiles, "N_TILES": n_tiles, **(tuning or {})}
    window_y, window_x = 8 * macros["N_TILES"], 16 * macros["M_TILES"]
    tiles_y, tiles_x = ceil_div(rows_of_window, window_y), ceil_div(columns_of_window, window_x)
    parts = problem.pairs * tiles_y * tiles_x

    def blocks(rows: int, panel: int) -> int:
        return problem.for_choice.pairs * tiles_y * tiles_x * ceil_div(height, rows) * ceil_div(columns, panel)

    busy = (piece for piece in _PIECES if blocks(*piece[:2]) >= device.multiprocessors * 3 // 4)
    rows, panel, warps = next(busy, _PIECES[-1])
    if not tuning and blocks(rows, panel) * warps > _WAVES * _RESIDENT * device.multiprocessors:
        return None
    macros = {"PIECE_ROWS": rows, "PANEL": panel, "WARPS": warps, **macros}
    macros = {"MIN_BLOCKS": _RESIDENT // macros["WARPS"], **macros}
    panels = ceil_div(columns, macros["PANEL"])
    pieces = ceil_div(height, macros["PIECE_ROWS"]) * panels
    types: dict[str, str | int] = {"LEFT_TYPE": INPUT_TYPES[left_type], "RIGHT_TYPE": INPUT_TYPES[right_type]}
    launch = Launch(
        "tensor/hankel_pieces",
        {**types, **macros, "MOVING_IS_LEFT": 0},
        parts * pieces,
        macros["WARPS"] * WARP,
        _bytes(macros),
        (tiles_y, tiles_x, pieces, panels),
        segments=pieces,
    )
    return HankelLaunch(launch, *shared_sums(parts, pieces, window_y * window_x))


def _bytes(macros: Mapping[str, int]) -> int:
    """Of a block, as the kernel lays them out."""
    fixed_rows = macros["PIECE_ROWS"] + 8 * macros["N_TILES"] - 1
    fixed_words = (macros["PANEL"] // 2 + 31) // 32 * 32 + 4
    return block_bytes(macros, 1, macros["PIECE_ROWS"] * moving_words(macros) + fixed_rows * fixed_words)
