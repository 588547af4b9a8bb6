"""Launch parameters of the fused pass for taps of low rank: sizes in; strip, rows, grid, defines and taps out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.types import WITH_DOUBLE
from xcorr_app.gpu.stencil.problem import FilterProblem, check_types, stays_in_range
from xcorr_app.gpu.stencil.reuse import whole_waves

MAX_TERMS = 2
LARGEST_LENGTH = 129
"""Most taps of a column or a row that one pass takes."""

Vector = npt.NDArray[np.float64]

_ROLLING_REGISTERS = 136
"""Most registers of a lane for rolling sums."""
_OVERHEAD_OF_NARROW = {4: 1.0, 2: 1.1, 1: 1.3}
"""Work for an element in strips of fewer columns a lane, relative to four."""
_BLOCKS = {4: {36: 10, 68: 8, 96: 6, 136: 4}, 2: {36: 10, 68: 8, 96: 6, 136: 4}, 1: {36: 8, 68: 6, 136: 4}}
"""Blocks of a multiprocessor, by the columns of a lane and the registers of rolling sums: with fewer registers for the
rest the same takes up to twice the time, as measured."""
_HEAVY_WIDE_REGISTERS = 68
_HEAVY_BLOCKS = {36: 8, 68: 5, 136: 2}
"""The same with two terms, sums in double, or a constant outside of columns that are added apart."""
_APART_ROWS, _APART_REGISTERS = 48, 6
"""Rows of a filter from which the kernel sums those of integer images apart, and the registers that this takes."""
_WARPS = 2
_LARGE_BLOCKS = range(25, 37)
"""Registers for rolling sums, of two columns a lane and one term of float32, for which half as many blocks of twice the
warps are faster."""
_WARPS_TO_FILL = 12
"""Warps of a multiprocessor that keep it busy; fewer take as long as these. Strips of four columns a lane need all that
fit."""
_FLOAT_COLUMNS = 2
"""Most columns of a lane for float32 images, as measured."""


@dataclass(frozen=True)
class SeparableProblem(FilterProblem):
    """A sum of separable terms: `terms` is the number of pairs of a column and a row whose results are added."""

    terms: int = 1

    def __post_init__(self) -> None:
        if min(self.filter_shape) < 1 or not 1 <= self.terms <= MAX_TERMS:
            raise ShapeError(f"1 or {MAX_TERMS} terms of at least one tap along each axis are computed: {self}")
        super().__post_init__()


def fits_one_pass(filter_shape: tuple[int, int], image_type: str) -> bool:
    """Whether the kernel takes taps of these lengths for images of this type."""
    return max(filter_shape) <= LARGEST_LENGTH and filter_shape[0] * _words(image_type) <= _ROLLING_REGISTERS


def separable_launch(
    problem: SeparableProblem,
    *,
    image_type: str = "float32",
    result_type: str = "float32",
    clips: bool = True,
    device: DeviceLimits | None = None,
    tuning: Mapping[str, int] | None = None,
) -> Launch:
    """Choose grid and defines of the fused pass.

    Examples
    --------
    >>> separable_launch(SeparableProblem((512, 512), (17, 17))).defines["LANE_COLUMNS"]
    2
    """
    check_types(image_type, result_type)
    if not fits_one_pass(problem.filter_shape, image_type):
        raise ArgumentError(f"taps of shape {problem.filter_shape} are too long for one pass over {image_type}")
    device = device or DeviceLimits()
    chosen = {**_tuning_of(problem, image_type), **(tuning or {})}
    rows = _block_rows(problem, chosen, device)
    is_double = image_type == "float64"
    warp_bytes = _warp_bytes(problem, chosen, is_double)
    defines: dict[str, str | int] = {
        **problem.defines(),
        "IMAGE_TYPE": WITH_DOUBLE[image_type],
        "RESULT_TYPE": WITH_DOUBLE[result_type],
        "SUM_TYPE": "double" if is_double else "float",
        "FILTER_WIDTH": problem.filter_shape[1],
        "TERMS": problem.terms,
        "CLIPS": int(clips),
        "WARP_BYTES": warp_bytes,
        **chosen,
    }
    height, width = problem.result_shape
    warps = problem.count * ceil_div(width, chosen["LANE_COLUMNS"] * WARP) * ceil_div(height, rows)
    count, threads = ceil_div(warps, chosen["WARPS"]), chosen["WARPS"] * WARP
    return Launch("stencil/separable", defines, count, threads, chosen["WARPS"] * warp_bytes, problem.numbers(rows))


def terms_argument(terms: Sequence[tuple[Vector, Vector]], outside: float, image_type: str) -> npt.NDArray[Any]:
    """Pack terms as the kernel takes them: a struct by value."""
    sums = np.dtype(np.float64 if image_type == "float64" else np.float32)
    columns, rows = (np.array(vectors) for vectors in zip(*terms, strict=True))
    fields = [("weight", np.float64), ("column", sums, columns.shape), ("row", sums, rows.shape), ("outside", sums)]
    weight = (columns.sum(axis=1) * rows.sum(axis=1)).sum()
    return np.array((weight, columns, rows, outside), np.dtype(fields, align=True))


def never_clips(
    terms: Sequence[tuple[Vector, Vector]], image_type: str, result_type: str, outside: float | None = None
) -> bool:
    """Whether every result lies within its type's range whatever the images hold: weighted means of their values."""
    column, row = terms[0]
    least = min(column.min() * row.min(), column.max() * row.min(), column.min() * row.max())
    is_mean = stays_in_range(float(least), float(column.sum() * row.sum()), image_type, result_type, outside)
    return is_mean and (len(terms) == 1 or np.dtype(result_type).kind == "f")


def _words(image_type: str) -> int:
    return 2 if image_type == "float64" else 1


def _tuning_of(problem: SeparableProblem, image_type: str) -> dict[str, int]:
    """Columns of a lane: as many as registers hold, fewer where the strip would be wider than the image."""
    height, words = problem.filter_shape[0], _words(image_type)
    is_heavy = words > 1 or problem.terms > 1
    adds_apart = height > _APART_ROWS and np.dtype(image_type).kind != "f"
    is_plain = not is_heavy and not (adds_apart and problem.boundary == "constant")
    most = _ROLLING_REGISTERS - adds_apart * _APART_REGISTERS if is_plain else _HEAVY_WIDE_REGISTERS
    widest = _FLOAT_COLUMNS if image_type == "float32" else 4
    allowed = [n for n in (4, 2) if height * n * words <= most and n <= widest]

    def work(columns: int) -> float:
        return ceil_div(problem.result_shape[1], columns * WARP) * columns * _OVERHEAD_OF_NARROW[columns]

    columns = min([*allowed, 1], key=work)
    registers = height * columns * words
    table = _BLOCKS[columns] if is_plain else _HEAVY_BLOCKS
    chosen = {
        "LANE_COLUMNS": columns,
        "ROW_SUMS": 4 if columns == 1 and (is_heavy or adds_apart) else 8,
        "WARPS": _WARPS,
        "BLOCKS": next(blocks for most, blocks in table.items() if registers <= most),
    }
    if is_plain and image_type == "float32" and columns == 2 and registers in _LARGE_BLOCKS:
        chosen |= {"WARPS": 2 * _WARPS, "BLOCKS": chosen["BLOCKS"] // 2}
    if adds_apart and not is_plain:
        chosen["BLOCKS"] = min(chosen["BLOCKS"], 4)
    if is_heavy and registers > 36:  # registers for more rows at once are missing
        chosen["TOGETHER"] = 1 if registers > _HEAVY_WIDE_REGISTERS else 2
    return chosen


def _block_rows(problem: SeparableProblem, chosen: Mapping[str, int], device: DeviceLimits) -> int:
    height, width = problem.result_shape
    strips = problem.count * ceil_div(width, chosen["LANE_COLUMNS"] * WARP)
    blocks, warps = chosen["BLOCKS"], chosen["WARPS"]
    fewest = warps * blocks if chosen["LANE_COLUMNS"] == 4 else min(_WARPS_TO_FILL, warps * blocks)
    return whole_waves(
        strips, height, problem.filter_shape[0], blocks=blocks, warps=warps, fewest=fewest, device=device
    )


def _warp_bytes(problem: SeparableProblem, chosen: Mapping[str, int], is_double: bool) -> int:
    """Shared memory of a warp, as `separable.cuh` lays it out."""
    strip, sums = chosen["LANE_COLUMNS"] * WARP, chosen["ROW_SUMS"]
    rows = sums * WARP // strip
    skipped = -problem.first[1] % 4
    staged = (strip - sums) // 4 + ceil_div(skipped + problem.filter_shape[1] + sums - 1, 4)
    elements = rows * 4 * ((staged | 1) + problem.terms * (strip // 4 | 1))
    return elements * (8 if is_double else 4) + staged * 4 * 4
