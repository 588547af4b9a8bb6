"""What a filter kernel is asked for: sizes, types, boundary, taps; Python's side of ``kernels/include/filter.cuh``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.runtime.launch import WARP, ceil_div
from xcorr_app.gpu.runtime.types import WITH_DOUBLE

BOUNDARIES = ("reflect", "mirror", "nearest", "wrap", "constant", "valid")
"""What lies outside an image, with the names of `scipy.ndimage`; ``valid`` asks for nothing outside."""


LARGEST_FILTER = 63
"""Most rows and columns of taps that are computed tap by tap."""
_LARGEST_INDEX = 2**31 - 2**16  # room for the last block's surplus warps


@dataclass(frozen=True)
class FilterProblem:
    """Sizes, boundary and origin of one filter over a stack of images (correlation: the taps are not flipped).

    Attributes
    ----------
    image_shape : tuple of int
        (height, width) of one image, in pixels.
    filter_shape : tuple of int
        Rows and columns of the taps.
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
        if min(*self.image_shape, self.count) < 1 or max(self.image_shape) >= 2**27:
            raise ShapeError(f"images need 1 to 2^27 - 1 pixels a side, and a stack one image: {self}")
        if min(self.filter_shape) < 1:
            raise ShapeError(f"taps of shape {self.filter_shape}: at least one row and one column are computed")
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
        """Row and column of the tap that lies on the result's own pixel."""
        if self.boundary == "valid":
            return (0, 0)
        (height, width), (rows, columns) = self.filter_shape, self.origin
        return (height // 2 + rows, width // 2 + columns)

    @property
    def result_shape(self) -> tuple[int, int]:
        """Height and width of one result: the image's, or less by the taps' for ``valid``."""
        (height, width), (rows, columns) = self.image_shape, self.filter_shape
        return (height - rows + 1, width - columns + 1) if self.boundary == "valid" else (height, width)

    def parts(self, lane_columns: int = 1, rows: int = 1, *, besides: int = 0) -> Iterator[tuple[int, Self]]:
        """Cut the stack into launches whose indices fit 32 bits, where lanes have so many columns, warps so many rows.

        `besides` are warps of an image that cover no columns. Yields the number of a part's first image, and the
        part's problem.
        """
        height, width = self.result_shape
        warps = ceil_div(width, lane_columns * WARP) * ceil_div(height, rows) + besides
        most = max(1, _LARGEST_INDEX // (warps * WARP))
        for start in range(0, self.count, most):
            yield start, replace(self, count=min(most, self.count - start))

    def numbers(self, rows: int) -> tuple[int, ...]:
        """Kernel arguments that follow arrays and taps, for sub-blocks of so many rows."""
        return (*self.image_shape, *self.result_shape, self.count, rows)

    def defines(self) -> dict[str, str | int]:
        """Macros that every kernel of the family takes."""
        height, (top, left) = self.filter_shape[0], self.first
        return {"FILTER_HEIGHT": height, "TOP": top, "LEFT": left, "BOUNDARY": boundary_macro(self.boundary)}


def boundary_macro(boundary: str) -> str:
    """Return what `filter.cuh` calls a boundary; ``valid`` never asks, so any does."""
    return f"BOUNDARY_{'NEAREST' if boundary == 'valid' else boundary.upper()}"


def check_types(*names: str) -> None:
    """Raise ArgumentError for a type that no kernel of the family reads or writes."""
    for name in names:
        if name not in WITH_DOUBLE:
            raise ArgumentError(
                f"filters read and write {', '.join(WITH_DOUBLE)}, not {name}; convert the images first"
            )


def taps_argument(
    taps: npt.ArrayLike, outside: float, image_type: str, *, double_sums: bool = False
) -> npt.NDArray[Any]:
    """Pack taps as the kernels take them: a struct by value."""
    sums = np.dtype(np.float64 if double_sums or image_type == "float64" else np.float32)
    flat = np.asarray(taps, sums).ravel()
    total = np.asarray(taps, np.float64).sum()
    totals = (total, total - np.float64(sums.type(total)))
    return np.array((flat, outside, totals), [("at", sums, (flat.size,)), ("outside", sums), ("total", sums, (2,))])


def stays_in_range(
    min_tap: float, total: float, image_type: str, result_type: str, outside: float | None = None
) -> bool:
    """Whether every result lies within its type's range whatever the images hold: weighted means of their values."""
    if np.dtype(result_type).kind == "f":
        return True
    if image_type != result_type:
        return False
    limits = np.iinfo(image_type)
    if outside is not None and not limits.min <= outside <= limits.max:
        return False
    return min_tap >= 0 and total <= 1 + 1e-9
