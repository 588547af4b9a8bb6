"""Tables of tunables of the correlation kernels, measured on one H200; apart from how the kernels are launched."""

from __future__ import annotations

from xcorr_app.gpu.direct.problem import Problem

ALL_ROWS = {"DISTRIBUTION": 0, "MAX_ROWS": 32}
"""One worker for all rows of a shift; where they are distributed, so many rows each."""

TUNING: dict[str, dict[str, int]] = {
    "overlap-wise": {"THREADS": 128},
    "shift-per-warp": {"SHIFTS_PER_BLOCK": 4},
    "warp-shuffle": {"WARPS": 4},
    "warp-shuffle-distributed": {"WARPS": 4, "DISTRIBUTION": 2, "MAX_ROWS": 8},
    "multi-right": {"WARPS": 4, "RIGHTS": 4, **ALL_ROWS},
    "multi-left-right": {"WARPS": 4, "LEFTS": 4, "RIGHTS": 4, **ALL_ROWS},
    "multi-row": {"WARPS": 4, "SHIFTS": 8, "LEFT_ROWS": 4, "PHASES": 0, **ALL_ROWS},
    "combined-shuffle": {"WARPS": 4, "PHASES": 0, **ALL_ROWS},
}
"""Macro values by variant; the others choose theirs by the problem's shape."""

SMALL_TILES = (
    (2_000, (4, 4, 1, 1, 4, 4)),
    (8_000, (8, 4, 1, 1, 8, 2)),
    (40_000, (8, 4, 1, 2, 4, 2)),
)
"""(Most shifts of the whole batch, tile): few shifts need many warps a tile; tile as in `combined_tile`."""

NARROW = 33  # widest window that one thread's sums span
SUMS_A_THREAD = 102  # of a thread with up to 168 registers
WINDOW_WARPS = 6  # of a block, where it covers a narrow window


def combined_tile(problem: Problem) -> dict[str, int]:
    """Choose the tile of shifts of ``combined`` that wastes the fewest products on this window."""
    height, width = problem.plane_shape
    shifts = problem.for_choice.pairs * height * width
    small = next((tile for most, tile in SMALL_TILES if shifts <= most), None) if is_small(problem) else None
    if small:
        return _with_chunks(problem, small, 64, 256)
    if width <= NARROW:
        return _with_chunks(problem, _narrow_tile(height, width), 64, 128)
    return _with_chunks(problem, _wide_tile(height, width), 32, 256)


def window_tile(problem: Problem) -> dict[str, int] | None:
    """Choose the tile by which one block covers the whole window."""
    height, width = problem.plane_shape
    if width > NARROW:
        return None
    tile = _narrow_tile(height, width)
    return None if tile[1] * tile[3] < height else _with_chunks(problem, tile, 64, 128)


def _with_chunks(problem: Problem, tile: tuple[int, ...], rows: int, columns: int) -> dict[str, int]:
    names = ("TILE_X", "TILE_Y", "WARPS_X", "WARPS_Y", "WARPS_K", "MIN_BLOCKS")
    return dict(zip(names, tile, strict=True)) | {
        "CHUNK_ROWS": min(rows, problem.left_shape[0]),
        "CHUNK_COLUMNS": min(columns, -(-problem.right_shape[1] // 4) * 4),
    }


def is_small(problem: Problem) -> bool:
    """Whether the matrices are so small that a second kernel, to add up segments, takes longer than it saves."""
    return problem.right_shape[0] * problem.right_shape[1] <= 128 * 128


def segment_count(problem: Problem, tiles: int, rows: int, multiprocessors: int) -> int:
    """Choose into how many segments ``combined`` cuts the rows."""
    if is_small(problem):
        return 1
    wanted = 8 if problem.plane_shape[1] <= NARROW else 30
    return max(1, min(-(-wanted * multiprocessors // (problem.for_choice.pairs * tiles)), rows // 8))


def _narrow_tile(height: int, width: int) -> tuple[int, ...]:
    """Tile whose width is the window's."""
    warps_y = -(-height // min(height, SUMS_A_THREAD // width, 24))
    tile_y = -(-height // warps_y)
    in_block = min(warps_y, 11, max(1, 48 // tile_y))  # the more dy a block, the more right rows it stages
    warps_k = max(1, WINDOW_WARPS // in_block)
    return width, tile_y, 1, in_block, warps_k, max(1, 12 // (in_block * warps_k))


def _wide_tile(height: int, width: int) -> tuple[int, ...]:
    """Block of 8 x 8 tiles that covers the window with the smallest rim; 4 x 2 of them where equal."""
    blocks = ((4, 2), (2, 4), (3, 3), (3, 2), (2, 3), (2, 2))

    def covered(block: tuple[int, int]) -> int:
        x, y = 8 * block[0], 8 * block[1]
        return -(-height // y) * y * -(-width // x) * x

    best = min(blocks, key=covered)
    warps_x, warps_y = blocks[0] if covered(blocks[0]) <= 1.03 * covered(best) else best
    return 8, 8, warps_x, warps_y, 1, max(1, 16 // (warps_x * warps_y))


def row_product_shape(problem: Problem, *, is_float: bool = True) -> dict[str, int]:
    """Choose the piece of ``row-product`` that pads these widths least, and how a block is filled."""

    def padded(block: int) -> int:
        left, right = (-(-shape[1] // block) * block for shape in (problem.left_shape, problem.right_shape))
        return left * right

    block = min((32, 28, 24, 20, 16), key=padded)
    period = max(problem.left_shape[0], problem.right_shape[0])
    shift_rows, pairs = next(
        (rows, pairs) for rows, pairs in ((16, 8), (32, 4), (64, 2)) if period <= rows or rows == 64
    )
    return {
        "BLOCK": block,
        "PAIRS": pairs,
        "SHIFT_ROWS": shift_rows,
        "CHUNK_ROWS": shift_rows,
        "MIN_BLOCKS": 4 if is_float else 3,
    }
