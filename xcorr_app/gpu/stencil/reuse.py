"""Launch parameters of the filter kernels: a filter and a stack in; grid, defines and taps out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.types import WITH_DOUBLE
from xcorr_app.gpu.stencil import exchange
from xcorr_app.gpu.stencil.problem import LARGEST_FILTER, FilterProblem, check_types

FILTER_KERNELS = ("reuse", "reuse_wide", "exchange")
"""Kernels for taps of any rank; the last is the published exchange of columns."""

_ROLLING_TAPS = 225
"""Most taps that `reuse` takes by itself: its code grows with them."""
_ROLLING_ROWS = {12: 0, 13: 2**24, 15: 2**25}
"""Most rows that it takes by itself, and over how many pixels of results: each warp passes the filter's rows once more,
which costs little where it has many rows of its own."""
_ROLLING_REGISTERS = 122
"""Registers of four columns for sums and window that `reuse` takes where it is asked for."""

_REGISTERS_OF_BLOCKS = {5: 70, 4: 104, 3: 142, 2: 200}
"""Registers for sums and window that leave room for so many blocks of four warps on a multiprocessor; five are faster
for pixels of 16 bits only, as measured."""
_LANE_COLUMNS = 16
"""Most columns of a lane; twice as many would need more copies of an unaligned row than its mask has bits."""
_UNALIGNED = 12
"""Registers besides, where rows begin off multiples of 16 bytes."""
_FOUR_BLOCKS_ROWS = 9
"""Rows of a filter up to which four blocks are wanted: larger ones compute more for each access to memory, and three
are enough."""
_WIDE_LANES = {1: range(1, 10), 2: range(1, 10), 4: range(6, 8)}
"""Larger side of a filter, by the bytes of a pixel, for which lanes are as wide as two blocks allow: what a row costs
beside its products is then shared by more columns. (Smaller ones of float32 are as wide with four.)"""
_WHOLE_LANES_ROWS = 7
"""Rows of a filter from which eight columns of a lane lie side by side, not in two groups: fewer are read twice."""

_TUNING: Mapping[str, Mapping[str, int]] = {
    "reuse": {"WARPS": 4, "ROWS_AHEAD": 2},
    "reuse_wide": {"WARPS": 4},
    "exchange": exchange.PUBLISHED,
}
_BLOCK_ROWS = (128, 64, 32)
_MIN_SUMS = 6
"""Rows of sums of a warp, whatever the tuning."""
_MIN_ROWS = 8
"""Rows of results of a warp, whatever the tuning."""
_BATCH = {"BATCH_ROWS": 2, "ROWS_AHEAD": 1}
"""Of `reuse`: rows arrive two at a time, so that they share a wait and the steps of the loop. Not where clipped results
are counted: that needs the registers."""
_BATCHED_TAPS = 64
"""Most taps for that: so many, and no more, both rows read without registers."""
_FEW_WARPS = {"BATCH_ROWS": 1, "ROWS_AHEAD": 6}
"""Of `reuse`, where multiprocessors have too few warps to wait for one row while others work."""
_FLUSHED_TAPS = 400
"""Sums of more products are flushed: their rounding would show. (Of 20 rows, 16 would stay together anyway.)"""
_WARPS_TO_FILL = 12  # on each multiprocessor


def filter_launch(
    problem: FilterProblem,
    kernel: str = "auto",
    *,
    image_type: str = "float32",
    result_type: str = "float32",
    double_sums: bool = False,
    clips: bool = True,
    device: DeviceLimits | None = None,
    tuning: Mapping[str, int] | None = None,
) -> Launch:
    """Choose grid and defines of a filter kernel.

    Examples
    --------
    >>> filter_launch(FilterProblem((512, 512), (5, 5))).kernel
    'stencil/reuse'
    """
    check_types(image_type, result_type)
    if max(problem.filter_shape) > LARGEST_FILTER:
        raise ShapeError(f"taps of shape {problem.filter_shape}: 1 to {LARGEST_FILTER} rows and columns are computed")
    is_double = double_sums or image_type == "float64"
    if kernel == "auto":
        kernel = reuse_kernel(problem, is_double=is_double)
    if refusal := why_not(kernel, problem, is_double=is_double):
        raise ArgumentError(refusal)
    counts = clips and np.dtype(result_type).kind != "f"
    shape = _shape_of(kernel, problem, image_type, device or DeviceLimits(), is_double=is_double, counts=counts)
    chosen = {**_TUNING[kernel], **shape}
    chosen |= tuning or {}
    rows = chosen["ROWS"] if kernel == "reuse_wide" else chosen.pop("BLOCK_ROWS")
    if kernel == "reuse":
        chosen["WHOLE_LANES"] = int(problem.image_shape[1] % chosen["COLUMNS"] == 0)
    defines: dict[str, str | int] = {
        **problem.defines(),
        "IMAGE_TYPE": WITH_DOUBLE[image_type],
        "RESULT_TYPE": WITH_DOUBLE[result_type],
        "SUM_TYPE": "double" if is_double else "float",
        "CLIPS": int(clips),
        **chosen,
    }
    defines["FILTER_WIDTH"] = problem.filter_shape[1]
    if kernel == "exchange":
        warps, shared = exchange.warps_of(problem, chosen, rows), exchange.shared_bytes(problem, chosen, is_double)
    else:
        columns = WARP * chosen.get("GROUPS", 1) * chosen["COLUMNS"]
        warps = problem.count * ceil_div(problem.result_shape[1], columns) * ceil_div(problem.result_shape[0], rows)
        shared = _shared_bytes(problem, chosen, image_type, is_double)
    blocks, threads = ceil_div(warps, chosen["WARPS"]), chosen["WARPS"] * WARP
    return Launch(f"stencil/{kernel}", defines, blocks, threads, shared, extra=problem.numbers(rows))


def filter_parts(problem: FilterProblem, kernel: str) -> Iterator[tuple[int, FilterProblem]]:
    """Cut a stack into launches of a kernel, whatever its tuning."""
    if kernel == "exchange":
        yield from problem.parts(1, 1, besides=1)
    else:
        yield from problem.parts(4, _MIN_SUMS)


def reuse_kernel(problem: FilterProblem, *, is_double: bool) -> str:
    """Choose ``reuse`` where its rolling sums fit the registers and its code the cache, else ``reuse_wide``."""
    rows, columns = problem.filter_shape
    if is_double:
        return "reuse" if rows * columns <= 49 and rows <= 7 else "reuse_wide"
    pixels = problem.count * math.prod(problem.result_shape)
    most = max(most for most, min_pixels in _ROLLING_ROWS.items() if pixels >= min_pixels)
    return "reuse" if rows <= most and rows * columns <= _ROLLING_TAPS else "reuse_wide"


def why_not(kernel: str, problem: FilterProblem, *, is_double: bool) -> str | None:
    """Say why a kernel does not compute a problem, if it does not."""
    if kernel not in FILTER_KERNELS:
        return f"unknown filter kernel {kernel!r}; choose from auto, {', '.join(FILTER_KERNELS)}"
    rows, columns = problem.filter_shape
    if kernel == "reuse" and (5 * rows + columns) * (2 if is_double else 1) > _ROLLING_REGISTERS:
        return f"the sums of a {rows} x {columns} filter do not fit into registers: use reuse_wide"
    if kernel == "exchange" and is_double and rows > exchange.LARGEST_DOUBLE:
        return f"exchange takes up to {exchange.LARGEST_DOUBLE} rows of taps in float64, not {rows}"
    if max(rows, columns) > LARGEST_FILTER:
        return f"{kernel} takes up to {LARGEST_FILTER} x {LARGEST_FILTER} taps, not {rows} x {columns}"
    return None


def _shape_of(
    kernel: str, problem: FilterProblem, image_type: str, device: DeviceLimits, *, is_double: bool, counts: bool
) -> dict[str, int]:
    """Return what a warp works on: how rows reach it, columns of a lane, rows of a sub-block, order of the sums."""
    if kernel == "exchange":
        return {}
    element = np.dtype(image_type).itemsize
    aligned = problem.image_shape[1] * element % 16 == 0
    chosen = {"GRAIN": 16 if element < 4 or (element == 4 and aligned) else element, "ALIGNED": int(aligned)}
    chosen["CENTRE"] = int(image_type in ("uint16", "int16") and not is_double)
    if kernel == "reuse_wide":
        return chosen | _wide(problem, is_double)
    return chosen | _rolling(problem, element, device, is_double=is_double, counts=counts)


def _rolling(
    problem: FilterProblem, element: int, device: DeviceLimits, *, is_double: bool, counts: bool
) -> dict[str, int]:
    """As many columns a lane as registers hold; fewer, and fewer rows, where warps would be missing."""
    rows, taps = problem.filter_shape
    width, height = problem.result_shape[1], problem.result_shape[0]

    def registers(columns: int, groups: int) -> int:
        return groups * (columns * rows + columns + taps - 1) * (2 if is_double else 1)

    widths = {1: (16, 8, 4), 2: (8, 4), 4: (4, 8)}.get(element, (4,))
    shapes = [(columns, groups) for columns in widths for groups in (4, 2, 1)]
    is_wide = not is_double and max(rows, taps) in _WIDE_LANES.get(element, ())
    extra = 0 if problem.image_shape[1] * element % 16 == 0 else _UNALIGNED
    most = _REGISTERS_OF_BLOCKS[2 if is_wide else 4 if rows <= _FOUR_BLOCKS_ROWS else 3] - extra
    shapes = [shape for shape in shapes if registers(*shape) <= most and math.prod(shape) <= _LANE_COLUMNS] or [(4, 1)]

    def min_work(shape: tuple[int, int]) -> tuple[int, int, bool]:
        columns, groups = math.prod(shape) * WARP, shape[1]
        split = rows >= _WHOLE_LANES_ROWS and columns == 8 * WARP and groups > 1
        return ceil_div(width, columns) * columns, -columns, split

    def shape_of(columns: int, groups: int) -> dict[str, int]:
        max_blocks = 3 if rows > _FOUR_BLOCKS_ROWS else 5 if element == 2 and not is_double else 4
        needed = registers(columns, groups) + extra
        found = (blocks for blocks, held in _REGISTERS_OF_BLOCKS.items() if blocks <= max_blocks and needed <= held)
        batch = {} if is_double or counts or rows * taps > _BATCHED_TAPS else _BATCH
        return {"COLUMNS": columns, "GROUPS": groups, "BLOCKS": max(found, default=1), **batch}

    wanted = _WARPS_TO_FILL * device.multiprocessors
    for columns, groups in sorted(shapes, key=min_work):
        across = problem.count * ceil_div(width, columns * groups * WARP)
        for block_rows in _BLOCK_ROWS:
            if across * ceil_div(height, block_rows) >= wanted:
                chosen = shape_of(columns, groups)
                warps = _TUNING["reuse"]["WARPS"]
                filling: dict[str, Any] = {"blocks": chosen["BLOCKS"], "warps": warps, "device": device}
                filling["fewest"] = warps * chosen["BLOCKS"]
                return chosen | {"BLOCK_ROWS": whole_waves(across, height, rows, **filling)}
    columns, groups = min(shapes, key=math.prod)
    block_rows = _block_rows(problem, columns * groups * WARP, device)
    return shape_of(columns, groups) | {"BLOCK_ROWS": block_rows} | _FEW_WARPS


def _wide(problem: FilterProblem, is_double: bool) -> dict[str, int]:
    rows, columns = problem.filter_shape
    if is_double:
        return {"COLUMNS": 4, "ROWS": 6, "CHUNK": 8, "ROWS_AHEAD": 1, "BLOCKS": 3, "FLUSH_ROWS": 0}
    many = rows * columns > _FLUSHED_TAPS
    return {
        "COLUMNS": 8,
        "ROWS": 6 if columns > 16 else 8,
        "CHUNK": 24 if 16 < columns <= 24 or 32 < columns <= 40 else 16,  # no turn of a few taps
        "ROWS_AHEAD": 1,
        "BLOCKS": 4,
        "FLUSH_ROWS": 16 if many else 0,
    }


def _shared_bytes(problem: FilterProblem, chosen: Mapping[str, int], image_type: str, is_double: bool) -> int:
    """Rings of the warps (see `row_ring.cuh`) and, for `reuse_wide`, taps and, where they are flushed, sums."""
    rows, taps = problem.filter_shape
    element, grain, lane_columns = np.dtype(image_type).itemsize, chosen["GRAIN"], chosen["COLUMNS"]
    exact, left = grain == element, problem.first[1]
    step = max(lane_columns, grain // element)
    columns = (
        (left if exact else ceil_div(left, step) * step)
        + lane_columns * chosen.get("GROUPS", 1) * WARP
        + taps
        - 1
        - left
    )
    grains = ceil_div(columns, grain // element) + (not exact and not chosen["ALIGNED"])
    unit = max(16, lane_columns * element)
    ring = (chosen["ROWS_AHEAD"] + 1) * chosen.get("BATCH_ROWS", 1) * ceil_div(grains * grain, unit) * unit
    if "ROWS" not in chosen:
        return chosen["WARPS"] * ring
    sums = rows * ceil_div(taps, 4) * 4
    if chosen["FLUSH_ROWS"]:
        sums += chosen["ROWS"] * lane_columns * chosen["WARPS"] * WARP
    return chosen["WARPS"] * ring + sums * (8 if is_double else 4)


def whole_waves(
    strips: int, height: int, taps: int, *, blocks: int, warps: int, fewest: int, device: DeviceLimits
) -> int:
    """Choose the rows of a warp: each passes the filter's rows once more, but a last, partial wave leaves much idle."""
    most = min(height, 64 + ceil_div(2 * warps * blocks * device.multiprocessors, strips))

    def time(cuts: int) -> int:
        waves, rest = divmod(ceil_div(ceil_div(strips * cuts, warps), device.multiprocessors), blocks)
        busy = waves * warps * blocks + (max(rest * warps, fewest) if rest else 0)
        return busy * (ceil_div(height, cuts) + taps - 1)

    return ceil_div(height, min(range(1, most + 1), key=time))


def _block_rows(problem: FilterProblem, columns: int, device: DeviceLimits) -> int:
    """Rows of a sub-block: many, since each loads its filter's rows once more; fewer where warps would be missing."""
    rows = _BLOCK_ROWS[1]
    across = problem.count * ceil_div(problem.result_shape[1], columns)
    while (
        rows > _MIN_ROWS and across * ceil_div(problem.result_shape[0], rows) < _WARPS_TO_FILL * device.multiprocessors
    ):
        rows //= 2
    return rows
