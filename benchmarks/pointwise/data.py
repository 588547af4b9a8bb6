"""Random stacks and matrices of a pointwise case, and what some pixels of two images should become."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.contender import relative_error, to_host
from benchmarks.pointwise.cases import PointwiseCase

COUNTS = 4096
"""Counts of integer stacks: those of a camera of 12 bits, which PyTorch can take as int16, a type it computes with."""
_PIXELS = 64  # looked at on either end of a plane

Part = tuple[int, int, int]
"""Number of an image, first pixel and the one after the last."""


@dataclass(frozen=True)
class MixingData:
    """Arrays of a case.

    Attributes
    ----------
    stacks : list of ndarray
        Equal copies (images, channels, side, side).
    matrices : list of ndarray
        Equal copies (filters, channels), float32, beside the stacks.
    matrix : ndarray
        The same on the host.
    """

    stacks: list[Any]
    matrices: list[Any]
    matrix: NDArray[np.float32]


def random_mixing(case: PointwiseCase, xp: Any, copies: int) -> MixingData:
    """Make the arrays of a case."""
    shape = (case.images, case.channels, case.side, case.side)
    stack = xp.random.default_rng(1).random(shape, dtype=np.float32)
    if case.element != "float32":
        stack *= np.float32(COUNTS)
        stack = stack.astype(case.element)
    matrix = np.random.default_rng(2).random((case.filters, case.channels)) - 0.2
    matrix = (matrix / matrix.sum(axis=1, keepdims=True)).astype(np.float32)
    again = range(copies - 1)
    matrices = [xp.asarray(matrix) for _ in range(copies)]
    return MixingData([stack, *(stack.copy() for _ in again)], matrices, matrix)


class Expected:
    """Both ends of the first and of the last image, by a product in float64.

    Parameters
    ----------
    case : PointwiseCase
        Any.
    data : MixingData
        Its arrays, on the device or on the host.

    Attributes
    ----------
    tolerance : float
        Of the relative error: TF32 would not keep it. Integer results are rounded.
    parts : list of tuple
        What is looked at.
    """

    def __init__(self, case: PointwiseCase, data: MixingData) -> None:
        self.tolerance = 1e-4 if case.result == "float32" else 1e-3
        ends = sorted({(0, min(_PIXELS, case.pixels)), (max(0, case.pixels - _PIXELS), case.pixels)})
        self.parts: list[Part] = [(image, *end) for image in sorted({0, case.images - 1}) for end in ends]
        self._pixels = {part: self._mixed(case, data, part) for part in self.parts}

    def error(self, part: Part, answer: Any) -> float:
        """Return the relative error of some pixels (filters, pixels)."""
        return relative_error(answer.astype(np.float64), self._pixels[part])

    @staticmethod
    def read_planar(result: Any, part: Part) -> Any:
        """Read some pixels of a result (images, filters, ...) of planes."""
        image, start, stop = part
        return to_host(result[image].reshape(result.shape[1], -1)[:, start:stop])

    @staticmethod
    def read_interleaved(result: Any, part: Part) -> Any:
        """Read some pixels of a result (images, pixels, filters)."""
        image, start, stop = part
        return to_host(result[image, start:stop]).T

    @staticmethod
    def _mixed(case: PointwiseCase, data: MixingData, part: Part) -> NDArray[np.float64]:
        image, start, stop = part
        pixels = to_host(data.stacks[0][image].reshape(case.channels, -1)[:, start:stop]).astype(np.float64)
        mixed: NDArray[np.float64] = data.matrix.astype(np.float64) @ pixels
        if case.result == "float32":
            return mixed
        limits = np.iinfo(case.result)
        return np.clip(np.rint(mixed), limits.min, limits.max)
