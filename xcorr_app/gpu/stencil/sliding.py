"""Launch parameters of the sliding sums: one pass over the columns of a stack in; grid, defines and tables out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.types import INPUT_TYPES
from xcorr_app.gpu.stencil.cosine_series import CosineSeries, StartTable
from xcorr_app.gpu.stencil.problem import boundary_macro

TUNING: dict[str, int] = {"WARPS": 4, "BLOCKS": 4, "CHUNK": 16, "START_FLUSH": 128}
"""Macros of the kernel and their values: CHUNK divides a warp, START_FLUSH is a multiple of one."""

_LARGEST_INDEX = 2**31 - 2**16  # room for the last block's surplus warps
_WARPS_TO_FILL = 16  # of each multiprocessor
_START_COST = 0.25  # of a row of the first sums, in rows of the walk
_FLOAT_ROWS = 2048  # after which sums in float begin again


@dataclass(frozen=True)
class SlidingPass:
    """One pass: every column of every image is filtered, and the result of an image is its transpose.

    Attributes
    ----------
    image_shape : tuple of int
        (height, width) of one image, in pixels.
    count : int
        Number of images.
    boundary : str
        What lies outside an image, with the names of `scipy.ndimage`: all but ``valid``.
    """

    image_shape: tuple[int, int]
    count: int = 1
    boundary: str = "reflect"

    @property
    def strips(self) -> int:
        """Warps that lie side by side in an image."""
        return ceil_div(self.image_shape[1], WARP)

    def max_images(self, rows: int) -> int:
        """How many images one launch can have, in segments of so many rows."""
        return max(1, _LARGEST_INDEX // (self.strips * ceil_div(self.image_shape[0], rows) * WARP))

    def with_count(self, count: int) -> SlidingPass:
        """Return the same pass over another number of images."""
        return replace(self, count=count)


def sum_type_for(result_type: str) -> str:
    """Type of the sums: double where results are integers so large that an error of 1e-6 would change many of them."""
    return "double" if result_type in ("uint16", "int16") else "float"


def segment_rows(
    problem: SlidingPass, series: CosineSeries, *, sum_type: str = "double", device: DeviceLimits | None = None
) -> int:
    """Choose the rows of a segment: all, or fewer where warps would be missing; each begins with sums of its own."""
    height = problem.image_shape[0]
    at_once = _WARPS_TO_FILL * (device or DeviceLimits()).multiprocessors
    start = _START_COST * min(height, 2 * series.radius + 2)

    def cost(rows: int) -> float:
        warps = problem.count * problem.strips * ceil_div(height, rows)
        return max(1.0, warps / at_once) * (start + rows)

    whole = ceil_div(height, WARP) * WARP
    choices = [ceil_div(ceil_div(height, segments), WARP) * WARP for segments in range(1, min(64, whole // WARP) + 1)]
    if sum_type == "float":
        choices = [rows for rows in choices if rows <= _FLOAT_ROWS] or [_FLOAT_ROWS]
    return min(choices, key=cost)


def sliding_launch(
    problem: SlidingPass,
    series: CosineSeries,
    table: StartTable,
    rows: int,
    *,
    image_type: str = "float32",
    result_type: str = "float32",
    sum_type: str = "double",
) -> Launch:
    """Choose grid and defines of one pass.

    Examples
    --------
    >>> from xcorr_app.gpu.stencil.cosine_series import gaussian_series, start_table
    >>> series = gaussian_series(64.0)
    >>> launch = sliding_launch(SlidingPass((1024, 1024), 64), series, start_table(series, 1024, 1024, "reflect"), 1024)
    >>> launch.blocks * launch.threads == 64 * 1024
    True
    """
    chosen = {**TUNING, **_fewer_registers(problem, series, sum_type)}
    defines: dict[str, str | int] = {
        "IMAGE_TYPE": INPUT_TYPES[image_type],
        "RESULT_TYPE": INPUT_TYPES[result_type],
        "SUM_TYPE": sum_type,
        "TERMS": series.terms,
        "BOUNDARY": boundary_macro(problem.boundary),
        **chosen,
    }
    segments = len(table.first)
    warps = problem.count * problem.strips * segments
    numbers = (*problem.image_shape, problem.count, series.radius, segments, rows, table.weights.shape[1])
    blocks, threads = ceil_div(warps, chosen["WARPS"]), chosen["WARPS"] * WARP
    shared_bytes = chosen["WARPS"] * WARP * (WARP + 1) * np.dtype(result_type).itemsize
    return Launch("stencil/sliding", defines, blocks, threads, shared_bytes, extra=numbers)


def _fewer_registers(problem: SlidingPass, series: CosineSeries, sum_type: str) -> dict[str, int]:
    """Return smaller chunks or fewer blocks where the table's values would leave the registers."""
    if sum_type == "double":
        return {"CHUNK": 4 if problem.boundary == "constant" else 8}
    return {"BLOCKS": 3} if series.terms > 5 else {}


def series_argument(series: CosineSeries, outside: float, sum_type: str = "double") -> npt.NDArray[Any]:
    """Pack a series as the kernel takes it: a struct by value."""
    sums, is_float = np.dtype(np.float32 if sum_type == "float" else np.float64), sum_type == "float"
    edge = series.amplitudes * np.cos(series.angles * series.radius)
    beyond = series.amplitudes * np.cos(series.angles * (series.radius + 1))
    fields: list[Any] = [(name, sums, (series.terms,)) for name in ("turn", "edge", "inner")]
    turn = -4 * np.sin(series.angles / 2) ** 2 if is_float else 2 * np.cos(series.angles)
    return np.array((turn, edge, edge - beyond if is_float else -beyond, outside), [*fields, ("outside", sums)])


def packed_table(table: StartTable, sum_type: str = "double") -> npt.NDArray[np.floating[Any]]:
    """Return a table's weights as the kernel reads them: rows of whole 16 bytes, of the type of the products."""
    dtype = np.dtype(np.float64 if sum_type == "double" else np.float32)
    segments, rows, weights = table.weights.shape
    packed = np.zeros((segments, rows, ceil_div(weights * dtype.itemsize, 16) * 16 // dtype.itemsize), dtype)
    packed[..., :weights] = table.weights
    return packed
