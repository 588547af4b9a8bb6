"""Launch parameters of the filter kernels: a filter and a stack in; grid, defines and taps out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.correlation_problem import INPUT_TYPES
from xcorr_app.gpu.launch import WARP, DeviceLimits, Launch, ceil_div

__all__ = ["BOUNDARIES", "FILTER_KERNELS", "FILTER_TYPES", "FilterProblem", "filter_launch", "taps_argument"]

BOUNDARIES = ("reflect", "mirror", "nearest", "wrap", "constant", "valid")
"""What lies outside an image, with the names of `scipy.ndimage`; ``valid`` asks for nothing outside."""

FILTER_TYPES = {**INPUT_TYPES, "float64": "double"}
"""NumPy name of every type that images and results may have, and its name in CUDA C++."""

FILTER_KERNELS = ("reuse", "reuse_wide", "exchange_3", "exchange_5")
"""Every kernel by name; the last two are the published exchanges, for filters of 3 and 5 columns."""

LARGEST_FILTER = 63
_LARGEST_INDEX = 2**31 - 2**16  # room for the last block's surplus warps
_LANE_COLUMNS = {"reuse": 4, "reuse_wide": 4, "exchange_3": 1, "exchange_5": 1}
_EXCHANGE_COLUMNS = {"exchange_3": 3, "exchange_5": 5}
_EXCHANGE_ROWS = 9

_ROLLING_REGISTERS = 112
"""Most registers for rolling sums and window that `reuse` may take: four sums a filter row, one value a column."""

_TUNING: dict[str, dict[str, int]] = {
    "reuse": {"WARPS": 4, "BLOCKS": 2},
    "reuse_wide": {"WARPS": 4, "ROWS": 8},
    "exchange_3": {"WARPS": 4, "COLUMN_REUSE": 1, "ROW_REUSE": 1},
    "exchange_5": {"WARPS": 4, "COLUMN_REUSE": 1, "ROW_REUSE": 1},
}
_MOST_ROWS, _FEWEST_ROWS = 64, 8
_WARPS_TO_FILL = 16  # on each multiprocessor


@dataclass(frozen=True)
class FilterProblem:
    """Sizes, boundary and origin of one filter over a stack of images (correlation: the taps are not flipped).

    Attributes
    ----------
    image_shape : tuple of int
        (height, width) of one image, in pixels.
    filter_shape : tuple of int
        Rows and columns of the taps, each from 1 to 63.
    count : int
        Number of images.
    boundary : str
        One of `BOUNDARIES`.
    origin : tuple of int
        Rows and columns by which the filter's centre is off ``size // 2``, as in `scipy.ndimage.correlate`.
    """

    image_shape: tuple[int, int]
    filter_shape: tuple[int, int]
    count: int = 1
    boundary: str = "reflect"
    origin: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        if min(*self.image_shape, self.count) < 1 or max(self.image_shape) >= 2**30:
            raise ShapeError(f"images need 1 to 2^30 - 1 pixels a side, and a stack one image: {self}")
        if min(self.filter_shape) < 1 or max(self.filter_shape) > LARGEST_FILTER:
            raise ShapeError(f"taps of shape {self.filter_shape}: 1 to {LARGEST_FILTER} rows and columns are computed")
        if self.boundary not in BOUNDARIES:
            raise ArgumentError(f"unknown boundary {self.boundary!r}; choose from {', '.join(BOUNDARIES)}")
        if self.boundary == "valid" and any(self.origin):
            raise ArgumentError("boundary 'valid' leaves no choice of origin: leave it out")
        if min(self.result_shape) < 1:
            raise ShapeError(f"taps of shape {self.filter_shape} do not fit into an image of {self.image_shape}")
        if not all(0 <= first < size for first, size in zip(self.first, self.filter_shape, strict=True)):
            raise ArgumentError(f"origin {self.origin} lies outside taps of shape {self.filter_shape}")

    @property
    def first(self) -> tuple[int, int]:
        """Row and column of the tap that meets the result's own pixel."""
        if self.boundary == "valid":
            return (0, 0)
        (height, width), (rows, columns) = self.filter_shape, self.origin
        return (height // 2 + rows, width // 2 + columns)

    @property
    def result_shape(self) -> tuple[int, int]:
        """Height and width of one result: the image's, or less by the taps' for ``valid``."""
        (height, width), (rows, columns) = self.image_shape, self.filter_shape
        return (height - rows + 1, width - columns + 1) if self.boundary == "valid" else (height, width)

    def parts(self, kernel: str) -> Iterator[tuple[int, FilterProblem]]:
        """Cut the stack into launches whose indices fit 32 bits.

        Parameters
        ----------
        kernel : str
            One of `FILTER_KERNELS`.

        Yields
        ------
        tuple
            Number of the part's first image, and the part's problem.
        """
        height, width = self.result_shape
        warps = ceil_div(width, _LANE_COLUMNS[kernel] * WARP) * ceil_div(height, _FEWEST_ROWS)
        most = max(1, _LARGEST_INDEX // (warps * WARP))
        for start in range(0, self.count, most):
            yield start, replace(self, count=min(most, self.count - start))


def filter_launch(
    problem: FilterProblem,
    kernel: str = "auto",
    *,
    image_type: str = "float32",
    result_type: str = "float32",
    device: DeviceLimits | None = None,
    tuning: Mapping[str, int] | None = None,
) -> Launch:
    """Choose grid and defines of a filter kernel.

    Parameters
    ----------
    problem : FilterProblem
        Sizes, boundary and origin.
    kernel : str, optional
        One of `FILTER_KERNELS`, or ``"auto"``: ``reuse`` where its sums fit into registers, else ``reuse_wide``.
    image_type, result_type : str, optional
        NumPy names of the types, of `FILTER_TYPES`. Images of float64 are summed in float64, all others in float32.
    device : DeviceLimits, optional
        Decides how finely few images are cut.
    tuning : mapping, optional
        Values of the kernel's macros that replace the table's.

    Returns
    -------
    Launch
        Its `extra` holds all kernel arguments after the arrays and the taps.

    Raises
    ------
    ArgumentError
        For an unknown kernel or type, and for a filter that the kernel does not compute.

    Examples
    --------
    >>> filter_launch(FilterProblem((512, 512), (5, 5))).kernel
    'filtering/reuse'
    """
    for name in (image_type, result_type):
        if name not in FILTER_TYPES:
            raise ArgumentError(
                f"filters read and write {', '.join(FILTER_TYPES)}, not {name}; convert the images first"
            )
    is_double = image_type == "float64"
    if kernel == "auto":
        kernel = "reuse" if _fits_registers(problem.filter_shape, is_double) else "reuse_wide"
    _check_kernel(kernel, problem, is_double)
    chosen = {**_TUNING[kernel], **_tuning_of(kernel, problem, image_type), **(tuning or {})}
    boundary = "nearest" if problem.boundary == "valid" else problem.boundary
    defines: dict[str, str | int] = {
        "IMAGE_TYPE": FILTER_TYPES[image_type],
        "RESULT_TYPE": FILTER_TYPES[result_type],
        "SUM_TYPE": "double" if is_double else "float",
        "FILTER_HEIGHT": problem.filter_shape[0],
        "TOP": problem.first[0],
        "LEFT": problem.first[1],
        "BOUNDARY": f"BOUNDARY_{boundary.upper()}",
        **chosen,
    }
    if kernel not in _EXCHANGE_COLUMNS:
        defines["FILTER_WIDTH"] = problem.filter_shape[1]
    across = ceil_div(problem.result_shape[1], _LANE_COLUMNS[kernel] * WARP)
    rows = chosen["ROWS"] if kernel == "reuse_wide" else _block_rows(problem, across, device or DeviceLimits())
    warps = problem.count * across * ceil_div(problem.result_shape[0], rows)
    numbers = (*problem.image_shape, *problem.result_shape, problem.count, rows)
    blocks, threads = ceil_div(warps, chosen["WARPS"]), chosen["WARPS"] * WARP
    return Launch(f"filtering/{kernel}", defines, blocks, threads, extra=numbers)


def taps_argument(taps: npt.ArrayLike, outside: float, image_type: str) -> npt.NDArray[Any]:
    """Pack taps as the kernels take them: a struct by value.

    Parameters
    ----------
    taps : array_like
        (rows, columns).
    outside : float
        Value outside the image, for boundary ``constant``.
    image_type : str
        NumPy name of the images' type, which decides the type of the sums.

    Returns
    -------
    ndarray
        One structured element, of the sums' type: the taps row by row, then `outside`.
    """
    sums = np.dtype(np.float64 if image_type == "float64" else np.float32)
    flat = np.asarray(taps, sums).ravel()
    packed = np.zeros((), np.dtype([("at", sums, (flat.size,)), ("outside", sums)]))
    packed["at"], packed["outside"] = flat, outside
    return packed


def _fits_registers(filter_shape: tuple[int, int], is_double: bool) -> bool:
    rows, columns = filter_shape
    return (4 * rows + columns + 3) * (2 if is_double else 1) <= _ROLLING_REGISTERS


def _check_kernel(kernel: str, problem: FilterProblem, is_double: bool) -> None:
    if kernel not in FILTER_KERNELS:
        raise ArgumentError(f"unknown filter kernel {kernel!r}; choose from auto, {', '.join(FILTER_KERNELS)}")
    rows, columns = problem.filter_shape
    if kernel == "reuse" and not _fits_registers(problem.filter_shape, is_double):
        raise ArgumentError(f"the sums of a {rows} x {columns} filter do not fit into registers: use reuse_wide")
    if kernel in _EXCHANGE_COLUMNS and (columns != _EXCHANGE_COLUMNS[kernel] or rows > _EXCHANGE_ROWS or is_double):
        raise ArgumentError(
            f"{kernel} computes {_EXCHANGE_COLUMNS[kernel]} columns and up to {_EXCHANGE_ROWS} rows of float32, "
            f"not {rows} x {columns}{' of float64' if is_double else ''}"
        )


def _tuning_of(kernel: str, problem: FilterProblem, image_type: str) -> dict[str, int]:
    """Return the values that depend on the filter: rows in flight where little work hides a load, and order of sums."""
    if kernel != "reuse":
        return {}
    taps = problem.filter_shape[0] * problem.filter_shape[1]
    # Sixteen bits take two thirds of what float32 can hold, and each rounding of a large sum shows in the result.
    careful = image_type in ("uint16", "int16") or (image_type != "float64" and taps > 128)
    return {"ROWS_AHEAD": 2 if taps <= 9 and image_type != "float64" else 1, "SUM_BY_ROWS": int(careful)}


def _block_rows(problem: FilterProblem, across: int, device: DeviceLimits) -> int:
    """Rows of a sub-block: many, since each loads its filter's rows once more; fewer where warps would be missing."""
    rows = _MOST_ROWS
    wanted = _WARPS_TO_FILL * device.multiprocessors
    while rows > _FEWEST_ROWS and problem.count * across * ceil_div(problem.result_shape[0], rows) < wanted:
        rows //= 2
    return rows
