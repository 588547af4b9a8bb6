"""How much work a correlation is for the kernels that may win it: instructions, blocks and what they stage."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.direct.tile_launches import band_product, combined, row_product
from xcorr_app.gpu.direct.tuning import band_shape
from xcorr_app.gpu.direct.warp_launches import row_per_warp
from xcorr_app.gpu.direct.work import KernelWork
from xcorr_app.gpu.runtime.launch import Launch, Types
from xcorr_app.gpu.runtime.limits import DeviceLimits

__all__ = ["KERNEL_WORK", "combined_work", "competes", "row_product_work"]

_FLOAT: Types = {"LEFT_TYPE": "float", "RIGHT_TYPE": "float", "SUM_TYPE": "float"}

_FEW_SHIFTS = 100_000

_RESIDENT_THREADS = 2048
"""Of a multiprocessor."""


def combined_work(problem: Problem, device: DeviceLimits) -> KernelWork:
    """Overlap of every tile of shifts, rim included."""
    launch = combined(problem, _FLOAT, {}, device)
    macros = _numbers(launch)
    tile_x, tile_y = macros["TILE_X"], macros["TILE_Y"]
    block_x, block_y = tile_x * macros["WARPS_X"], tile_y * macros["WARPS_Y"]
    fours = [-(-overlap // 4) for overlap in _tile_overlaps(problem, 1, tile_x)]
    heights = _tile_overlaps(problem, 0, tile_y)
    step = 4 * tile_x * tile_y + (tile_x + 6) // 4 + tile_y + 20  # products, loads, and the step's own arithmetic
    rows = min(problem.left_shape[0], max(heights) + block_y) / launch.segments
    down = math.ceil(rows / macros["CHUNK_ROWS"])
    along = math.ceil(min(problem.right_shape[1], 4 * max(fours)) / macros["CHUNK_COLUMNS"])
    left_fours = problem.left_shape[1] % 4 == 0 and problem.first_shift[1] % 4 == 0
    left_fours = left_fours and (block_x % 4 == 0 or block_x >= problem.plane_shape[1])
    staged = _by_alignment(
        (rows * along, (macros["CHUNK_COLUMNS"] + block_x + 6) // 4 * 4, left_fours),
        ((rows + down * (block_y - 1)) * along, macros["CHUNK_COLUMNS"], problem.right_shape[1] % 4 == 0),
    )
    plane = problem.pairs * problem.plane_shape[0] * problem.plane_shape[1]
    in_segments = launch.segments > 1
    return KernelWork(
        all_products=sum(fours) * sum(heights) * problem.pairs / 32 * step,
        longest_products=max(fours) * max(heights) / 32 / macros["WARPS_K"] / launch.segments * step,
        blocks=launch.blocks,
        warps=launch.threads // 32,
        waves=launch.blocks / (device.multiprocessors * macros["MIN_BLOCKS"]),
        staged=staged[0],
        scattered=staged[1],
        chunks=down * along,
        sums=tile_x * tile_y,
        code=4 * tile_x * tile_y,
        writes=float(plane * launch.segments),
        launches=1,
        passes=int(in_segments),
        passed_bytes=8.0 * plane * launch.segments if in_segments else 0.0,
    )


def row_product_work(problem: Problem, device: DeviceLimits) -> KernelWork:
    """All products of all pairs of padded pieces of rows."""
    launch = row_product(problem, _FLOAT, {}, device)
    macros = _numbers(launch)
    block, pairs, shift_rows = macros["BLOCK"], macros["PAIRS"], macros["SHIFT_ROWS"]
    (left_height, left_width), (right_height, right_width) = problem.left_shape, problem.right_shape
    left_pieces, right_pieces = -(-left_width // block), -(-right_width // block)
    period = max(left_height, right_height)
    groups = -(-problem.pairs // pairs) * -(-period // shift_rows)
    pieces = min(left_pieces, right_pieces)
    passes = -(-left_height // macros["CHUNK_ROWS"])
    right_rows = period if macros["WHOLE"] else left_height + passes * shift_rows
    staged = _by_alignment(
        (pieces * pairs * left_height, block, left_width % 4 == 0),
        (pieces * pairs * right_rows, block, right_width % 4 == 0),
    )
    blocks = launch.blocks + (launch.then.blocks if launch.then else 0)
    plane = problem.pairs * problem.plane_shape[0] * problem.plane_shape[1]
    sums = 2 * (2 * block - 1)  # for two values of dy in turn
    row = block * block * 1.03  # products, and the loads that feed them
    return KernelWork(
        all_products=groups * (pairs * shift_rows / 32) * left_height * left_pieces * right_pieces * row,
        longest_products=left_height * pieces * row,
        blocks=blocks,
        warps=launch.threads // 32,
        waves=blocks / (device.multiprocessors * macros["MIN_BLOCKS"]),
        staged=staged[0],
        scattered=staged[1],
        chunks=float(pieces * passes),
        sums=sums,
        code=block * block,
        writes=float(blocks * launch.threads * sums),
        launches=2 if launch.then else 1,
        passes=int(launch.zero_first),
        passed_bytes=4.0 * plane if launch.zero_first else 0.0,
    )


def band_product_work(problem: Problem, device: DeviceLimits) -> KernelWork:
    """Products of every row's band, each once."""
    launch = band_product(problem, _FLOAT, {}, device)
    macros = _numbers(launch)
    (left_height, left_width), (right_height, right_width) = problem.left_shape, problem.right_shape
    width, band = problem.plane_shape[1], sum(problem.overlaps(1))
    row = band + (left_width + right_width) / 4 + 10  # products, and the loads that feed them
    heights = problem.overlaps(0)
    pairs, parts = macros["PAIRS"], macros["PARTS"]
    staged = _by_alignment(
        (pairs * left_height, left_width, left_width % 4 == 0),
        (pairs * right_height, right_width, right_width % 4 == 0),
    )
    groups = -(-problem.pairs // pairs)  # a block walks over several
    return KernelWork(
        all_products=groups * pairs * sum(heights) / 32 * row,
        longest_products=math.ceil(max(heights) / parts) * row,
        blocks=groups,
        warps=launch.threads // 32,
        waves=groups / (device.multiprocessors * macros["MIN_BLOCKS"]),
        staged=staged[0],
        scattered=staged[1],
        chunks=1.0,
        sums=width * parts,
        code=band,
        writes=float(problem.pairs * problem.plane_shape[0] * width),
        launches=1,
        passes=0,
        passed_bytes=0.0,
    )


def row_per_warp_work(problem: Problem, device: DeviceLimits) -> KernelWork:
    """A row of 32 shifts at a time, rounded up to 32 columns."""
    launch = row_per_warp(problem, _FLOAT, {}, device)
    warps = launch.threads // 32
    pieces = [-(-overlap // 32) for overlap in _tile_overlaps(problem, 1, 32)]
    heights = problem.overlaps(0)
    piece = 32 + 40 + 30  # products, loads, and what it takes to stage a row
    plane = problem.pairs * problem.plane_shape[0] * problem.plane_shape[1]
    return KernelWork(
        all_products=float(problem.pairs * sum(pieces) * sum(heights) * piece),
        longest_products=float(max(pieces) * math.ceil(max(heights) / warps) * piece),
        blocks=launch.blocks,
        warps=warps,
        waves=launch.blocks / (device.multiprocessors * max(1, min(32, _RESIDENT_THREADS // launch.threads))),
        staged=0.0,
        scattered=0.0,
        chunks=float(max(pieces) * math.ceil(max(heights) / warps)),
        sums=warps,
        code=piece,
        writes=float(plane),
        launches=1,
        passes=0,
        passed_bytes=0.0,
    )


def competes(name: str, problem: Problem, device: DeviceLimits) -> bool:
    """Whether a kernel may be the fastest: ``row-product`` makes full planes, ``row-per-warp`` is for few shifts."""
    if name == "row-product":
        full = math.prod(left + right - 1 for left, right in zip(problem.left_shape, problem.right_shape, strict=True))
        return 2 * math.prod(problem.plane_shape) >= full
    if name == "row-per-warp":
        return problem.pairs * math.prod(problem.plane_shape) <= _FEW_SHIFTS
    if name == "band-product":
        return band_shape(problem, device.shared_bytes, is_double=False) is not None
    return True


def _numbers(launch: Launch) -> Mapping[str, int]:
    return {name: value for name, value in launch.defines.items() if isinstance(value, int)}


def _tile_overlaps(problem: Problem, axis: int, tile: int) -> list[int]:
    """Overlap of any shift of each tile along one axis."""
    left, right = problem.left_shape[axis], problem.right_shape[axis]
    first, count = problem.first_shift[axis], problem.plane_shape[axis]
    return [max(0, min(right, left - shift) - max(0, 1 - shift - tile)) for shift in range(first, first + count, tile)]


def _by_alignment(*parts: tuple[float, int, bool]) -> tuple[float, float]:
    """Elements of (rows, columns, whether they are aligned): the aligned ones, and the others, which go by 32."""
    aligned = sum(rows * columns for rows, columns, is_aligned in parts if is_aligned)
    return aligned, sum(rows * (-(-columns // 32) * 32) for rows, columns, is_aligned in parts if not is_aligned)


KERNEL_WORK: dict[str, Callable[[Problem, DeviceLimits], KernelWork]] = {
    "combined": combined_work,
    "row-product": row_product_work,
    "band-product": band_product_work,
    "row-per-warp": row_per_warp_work,
}
"""The kernels that lead the measurements somewhere."""
