"""How long the FFT and the kernels that ``auto`` takes are expected to run: counted work over the rates of a device.

Fitted to 1511 problems on one H200 (full planes of 16 to 512 pixels, windows of +-4 to +-64 of 16 to 1024 pixels, 1 to
16384 pairs): choosing by these times takes 4 % longer than the best of all that was timed, in the mean, and 1 % where a
call has 100 us besides. (The host's times, of engines, are rounded: .5 % at most, in the mean.) Rates of another device
go with its multiprocessors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xcorr_app.gpu.direct.fft_size import fast_length, smallest_size
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.direct.tile_launches import combined, row_product
from xcorr_app.gpu.runtime.launch import WARP, Launch, Types, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits

_MULTIPROCESSORS = 132
"""Of the device whose times all constants are."""


@dataclass(frozen=True)
class _Rates:
    """Microseconds of a launch, a product of all, one of the thread that has most, a result, and one launch more."""

    start: float
    product: float
    longest: float
    result: float
    further: float


_COMBINED = _Rates(4.1, 5.0e-8, 1.46e-3, 2.9e-5, 3.0)
_ROW_PRODUCT = _Rates(3.6, 3.7e-8, 1.25e-3, 4.6e-6, 18.6)
_FFT, _FFT_BYTES = 42.0, 2.51e6
"""Microseconds of its dozen launches and the gaps between them, and bytes a microsecond."""
_FLOAT: Types = {"LEFT_TYPE": "float", "RIGHT_TYPE": "float", "SUM_TYPE": "float"}


def fft_cost(problem: Problem, device: DeviceLimits) -> float:
    """Expected microseconds of planes by engine ``fft``: what its passes read and write."""
    rows, columns = (
        fast_length(smallest_size(left, right, first, first + count - 1))
        for left, right, first, count in zip(
            problem.left_shape, problem.right_shape, problem.first_shift, problem.plane_shape, strict=True
        )
    )
    padded, spectrum = rows * columns, rows * (columns // 2 + 1)
    floats = problem.lefts * math.prod(problem.left_shape) + problem.rights * math.prod(problem.right_shape)
    floats += (problem.lefts + problem.rights) * (3 * padded + 6 * spectrum)
    floats += problem.pairs * (12 * spectrum + padded + 2 * math.prod(problem.plane_shape))
    return _FFT + 4 * floats / _FFT_BYTES * share_of(device)


def combined_cost(problem: Problem, device: DeviceLimits) -> float:
    """Expected microseconds of planes by ``combined``: the overlap of every tile of shifts, rim included."""
    launch = combined(problem, _FLOAT, {}, device)
    macros = _numbers(launch)
    tile_x, tile_y = macros["TILE_X"], macros["TILE_Y"]
    # Products of a step, loads, and the step's own arithmetic.
    tile = tile_x * tile_y + (tile_x + 6) / 16 + tile_y / 4 + 5
    widths, heights = _tile_overlaps(problem, 1, tile_x), _tile_overlaps(problem, 0, tile_y)
    longest = tile * max(widths) * max(heights) / (WARP * macros["WARPS_K"] * launch.segments)
    results = problem.pairs * math.prod(problem.plane_shape) * launch.segments
    products = tile * sum(widths) * sum(heights) * problem.pairs
    return _expected(_COMBINED, products, longest, results, device, further=launch.segments > 1)


def row_product_cost(problem: Problem, device: DeviceLimits) -> float:
    """Expected microseconds of planes by ``row-product``, which makes all of them; infinite for less than half."""
    full = math.prod(left + right - 1 for left, right in zip(problem.left_shape, problem.right_shape, strict=True))
    if 2 * math.prod(problem.plane_shape) < full:
        return math.inf
    launch = row_product(problem, _FLOAT, {}, device)
    macros = _numbers(launch)
    block, pairs, shift_rows = macros["BLOCK"], macros["PAIRS"], macros["SHIFT_ROWS"]
    (left_height, left_width), (right_height, right_width) = problem.left_shape, problem.right_shape
    pieces = [ceil_div(width, block) for width in (left_width, right_width)]
    groups = ceil_div(problem.pairs, pairs) * ceil_div(max(left_height, right_height), shift_rows)
    row = left_height * block * block
    products = groups * pairs * shift_rows * row * math.prod(pieces)
    results = problem.pairs * math.prod(problem.plane_shape)
    return _expected(_ROW_PRODUCT, products, row * min(pieces), results, device, further=launch.zero_first)


def _expected(
    rates: _Rates, products: float, longest: float, results: float, device: DeviceLimits, *, further: bool
) -> float:
    share = share_of(device)
    work = math.hypot(rates.product * products * share, rates.longest * longest)
    return rates.start + work + rates.result * results * share + rates.further * further


def share_of(device: DeviceLimits) -> float:
    """By how much longer a full device takes than the one that was measured."""
    return _MULTIPROCESSORS / device.multiprocessors


def _numbers(launch: Launch) -> dict[str, int]:
    return {name: value for name, value in launch.defines.items() if isinstance(value, int)}


def _tile_overlaps(problem: Problem, axis: int, tile: int) -> list[int]:
    """Overlap of any shift of each tile along one axis."""
    left, right = problem.left_shape[axis], problem.right_shape[axis]
    first, count = problem.first_shift[axis], problem.plane_shape[axis]
    return [max(0, min(right, left - shift) - max(0, 1 - shift - tile)) for shift in range(first, first + count, tile)]
