"""Random stacks and taps of a filter case, and what two corners of the result should be."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from benchmarks.filters.cases import FilterCase
from benchmarks.harness.contender import relative_error, to_host

COUNTS = 4096
"""Counts of integer images: those of a camera of 12 bits, which PyTorch can take as int16, a type it computes with."""
_CORNER = (24, 64)  # rows and columns that are looked at

Part = tuple[int, bool]
"""Number of an image, and which corner: False the first, True the last."""


@dataclass(frozen=True)
class FilterData:
    """Arrays of a case.

    Attributes
    ----------
    stacks : list of ndarray
        Equal copies (images, height, width).
    taps : ndarray of float32
        (rows, columns), positive, of sum 1, of full rank; empty for a Gaussian.
    """

    stacks: list[Any]
    taps: NDArray[np.float32]


def random_stack(case: FilterCase, xp: Any, copies: int) -> FilterData:
    """Make the arrays of a case."""
    shape = (case.images, case.height, case.width)
    stack = xp.random.default_rng(1).random(shape, dtype=np.float32)
    if case.element != "float32":
        stack = (stack * np.float32(COUNTS)).astype(case.element)
    taps = np.random.default_rng(2).random((case.rows, case.columns)).astype(np.float32)
    if taps.size:
        taps /= taps.sum()
    return FilterData([stack, *(stack.copy() for _ in range(copies - 1))], taps)


class Expected:
    """Two corners of the first and of the last image, by SciPy in float64.

    Parameters
    ----------
    case : FilterCase
        Any.
    data : FilterData
        Its arrays, on the device or on the host.

    Attributes
    ----------
    tolerance : float
        Of the relative error: TF32 would not keep it. Integer results may be rounded or cut off.
    parts : list of tuple
        What is looked at.
    """

    def __init__(self, case: FilterCase, data: FilterData) -> None:
        self.tolerance = 1e-4 if case.element == "float32" else 1e-3
        numbers = sorted({0, case.images - 1})
        self.parts: list[Part] = [(number, last) for number in numbers for last in (False, True)]
        self._corners = {}
        for number in numbers:
            image = to_host(data.stacks[0][number]).astype(np.float64)
            for last in (False, True):
                corner = (_gaussian if case.sigma else _dense)(case, image, data.taps, last)
                self._corners[number, last] = corner if case.element == "float32" else np.rint(corner)

    def error(self, part: Part, answer: Any) -> float:
        """Return the relative error of a corner; the answer holds at least the corner, as `read_corner` cuts it."""
        return relative_error(answer.astype(np.float64), self._corners[part])

    @staticmethod
    def read_corner(result: Any, part: Part) -> Any:
        """Read a corner of a result (images, ..., height, width)."""
        number, last = part
        return to_host(_corner(result[number], last)).reshape(_corner_shape(result.shape[-2:]))


def _corner_shape(image_shape: tuple[int, ...]) -> tuple[int, int]:
    return min(_CORNER[0], image_shape[0]), min(_CORNER[1], image_shape[1])


def _corner(image: Any, last: bool) -> Any:
    rows, columns = _corner_shape(image.shape[-2:])
    return image[..., -rows:, -columns:] if last else image[..., :rows, :columns]


def _dense(case: FilterCase, image: NDArray[np.float64], taps: NDArray[np.float32], last: bool) -> NDArray[np.float64]:
    """Filter just as much of the image as the corner depends on."""
    rows, columns = (size + side for size, side in zip(_corner_shape(image.shape), taps.shape, strict=True))
    part = image[-rows:, -columns:] if last else image[:rows, :columns]
    filtered = ndimage.correlate(part, taps.astype(np.float64), mode=case.boundary)
    corner: NDArray[np.float64] = _corner(filtered, last)
    return corner


def _gaussian(case: FilterCase, image: NDArray[np.float64], _: Any, last: bool) -> NDArray[np.float64]:
    """Multiply with the rows of both axes' matrices that the corner needs."""
    ends = [slice(-size, None) if last else slice(size) for size in _corner_shape(image.shape)]
    by_row, by_column = (
        _gaussian_matrix(size, case.sigma, case.boundary)[end] for size, end in zip(image.shape, ends, strict=True)
    )
    corner: NDArray[np.float64] = by_row @ image @ by_column.T
    return corner


@functools.lru_cache(maxsize=4)
def _gaussian_matrix(size: int, sigma: float, boundary: str) -> NDArray[np.float64]:
    """SciPy's filter of a line as a matrix: what it makes of every single bright pixel."""
    matrix: NDArray[np.float64] = ndimage.gaussian_filter1d(np.eye(size), sigma, axis=0, mode=boundary)
    return matrix
