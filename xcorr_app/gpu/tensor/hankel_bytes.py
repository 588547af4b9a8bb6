"""Launch parameters of the tensor-core kernel for bytes: a problem in; grid, defines and memory out."""

from __future__ import annotations

from collections.abc import Mapping

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor.hankel import moving_is_left

__all__ = ["hankel_bytes_launch"]

_TILES = ((1, 2), (1, 4), (1, 6), (2, 2), (2, 4), (2, 6), (3, 2), (3, 4), (3, 6))
"""Tiles of 16 x 8 sums of a warp, along x and y, whose registers fit."""
_TILES_OF_TWO_FRAMES = 8
_PANELS = (64, 128, 256, 512)
_MAX_PRODUCTS = (2**31 - 1) // 255**2
"""That may add to one sum of 32 bits: 33025."""
_MAX_BLOCKS = 2**31 - 1
_MIN_ROWS = 32
"""Of a segment: each reads a window's rows of the plain matrix before its first."""


def hankel_bytes_launch(
    problem: Problem, *, device: DeviceLimits | None = None, tuning: Mapping[str, int] | None = None
) -> Launch:
    """Choose the launch that adds plain sums of uint8 matrices to planes of 64-bit whole numbers."""
    device = device or DeviceLimits()
    left_moves = moving_is_left(problem)
    rows, columns = problem.right_shape[0], problem.left_shape[1]
    if left_moves:
        rows, columns = problem.left_shape[0], problem.right_shape[1]
    macros = {**_tile(problem, columns, left_moves), **(tuning or {})}
    asked = macros.pop("SEGMENT_ROWS", rows)
    panels = ceil_div(columns, macros["PANEL"])
    tiles_y = ceil_div(problem.plane_shape[0], 8 * macros["N_TILES"])
    tiles_x = ceil_div(problem.plane_shape[1], 16 * macros["M_TILES"])
    bundles = ceil_div(problem.pairs, macros["FRAMES"])
    if not left_moves:
        bundles = problem.lefts * ceil_div(problem.rights_per_left, macros["FRAMES"])
    parts = bundles * tiles_y * tiles_x * panels
    idle = ceil_div(macros["MIN_BLOCKS"] * device.multiprocessors, parts)
    segment_rows = min(asked, _max_rows(macros), max(_MIN_ROWS, ceil_div(rows, idle)))
    segments = ceil_div(rows, segment_rows)
    blocks = parts * segments
    if blocks > _MAX_BLOCKS:
        raise ArgumentError(f"precision 'int8' takes smaller matrices or windows: {problem} needs {blocks} blocks")
    return Launch(
        "tensor/hankel_bytes",
        {"MOVING_IS_LEFT": int(left_moves), **macros},
        blocks,
        WARP * macros["WARPS"],
        _block_bytes(macros),
        (tiles_y, tiles_x, segments, segment_rows, panels),
        zero_first=True,
    )


def _tile(problem: Problem, columns: int, left_moves: bool) -> dict[str, int]:
    height, width = problem.plane_shape

    def cost(tile: tuple[int, int]) -> float:
        m_tiles, n_tiles = tile
        return ceil_div(width, 16 * m_tiles) * ceil_div(height, 8 * n_tiles) * (m_tiles * n_tiles + m_tiles + n_tiles)

    m_tiles, n_tiles = min(_TILES, key=cost)
    together = problem.pairs if left_moves else problem.rights_per_left
    frames = 2 if together > 1 and m_tiles * n_tiles <= _TILES_OF_TWO_FRAMES else 1
    panel = min(_PANELS, key=lambda panel: ceil_div(columns, panel) * (panel + 16 * m_tiles))
    warps = 4 if panel == _PANELS[0] else 8
    return {
        "FRAMES": frames,
        "M_TILES": m_tiles,
        "N_TILES": n_tiles,
        "WARPS": warps,
        "STEP_ROWS": 4 * frames if warps == 8 else 4,  # as measured
        "PANEL": panel,
        "MIN_BLOCKS": 16 // warps,
    }


def _max_rows(macros: Mapping[str, int]) -> int:
    """Rows of a block after which no sum of a warp has passed 32 bits."""
    step_rows = macros["STEP_ROWS"]
    columns_of_warp = macros["PANEL"] // (macros["WARPS"] // step_rows)
    return step_rows * (_MAX_PRODUCTS // columns_of_warp)


def _block_bytes(macros: Mapping[str, int]) -> int:
    """Bytes of a block, as the kernel lays them out."""
    panel, step_rows, m_tiles, n_tiles = (macros[name] for name in ("PANEL", "STEP_ROWS", "M_TILES", "N_TILES"))
    moving_words = 4 * (panel // 16 + m_tiles + 1)
    copies = 4 * ((moving_words + 23) // 32 * 32 + 8)
    ring = (8 * n_tiles + 2 * step_rows) * ((panel // 4 + 31) // 32 * 32 + 4)
    staged = macros["FRAMES"] * step_rows * (moving_words + copies) + ring
    work_bytes = ceil_div(72 + 8 * macros["FRAMES"], 16) * 16
    return work_bytes + 4 * max(staged, macros["WARPS"] * m_tiles * n_tiles * 128)
