"""The twelve layers that Im2win was published with, batch 128; images and filters, and two rows of two images' output.

Source: "Im2win: An Efficient Convolution Paradigm on GPU", arXiv:2306.14316, table 3. The window transform is part of
every time; its traffic is no part of the floor, which is images, filters and output once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.case import Work
from benchmarks.harness.contender import relative_error, to_host
from xcorr_app.gpu.im2win.problem import LAYERS, Im2winProblem

_MAX_FILTERS = 64  # that are looked at

Part = tuple[int, int]
"""Number of an image, and a row of its output."""


@dataclass(frozen=True, kw_only=True)
class Im2winCase(Work):
    """One layer.

    Attributes
    ----------
    problem : Im2winProblem
        Its sizes.
    """

    problem: Im2winProblem

    @property
    def fma(self) -> float:
        """Multiply-adds of the layer."""
        return float(self.problem.products)

    @property
    def moved_bytes(self) -> float:
        """Bytes of images, filters and output in float32, each once."""
        problem = self.problem
        images = problem.images * problem.channels * problem.height * problem.width
        return 4.0 * (images + problem.filters * problem.depth + problem.filters * problem.columns)


def _layer(number: int, problem: Im2winProblem) -> Im2winCase:
    sizes = f"{problem.channels}x{problem.height}|{problem.filters},{problem.filter_height},{problem.stride}"
    return Im2winCase(name=f"layer {number:02d}: {sizes}", problem=problem, in_quick=True)


CASES: tuple[Im2winCase, ...] = tuple(_layer(number, problem) for number, problem in LAYERS.items())
"""Every case, in the order in which they are run."""


@dataclass(frozen=True)
class LayerData:
    """Arrays of a layer, float32.

    Attributes
    ----------
    images : list of ndarray
        Equal copies (images, channels, height, width).
    filters : list of ndarray
        Equal copies (filters, channels, filter height, filter width).
    """

    images: list[Any]
    filters: list[Any]


def random_layer(case: Im2winCase, xp: Any, copies: int) -> LayerData:
    """Make the arrays of a layer."""
    rng, problem = xp.random.default_rng(1), case.problem
    images = rng.standard_normal((problem.images, problem.channels, problem.height, problem.width), dtype=np.float32)
    sizes = (problem.filters, problem.channels, problem.filter_height, problem.filter_width)
    filters = rng.standard_normal(sizes, dtype=np.float32)
    again = range(copies - 1)
    return LayerData([images, *(images.copy() for _ in again)], [filters, *(filters.copy() for _ in again)])


class Expected:
    """First and last row of the output of the first and the last image, by float64 sums.

    Parameters
    ----------
    case : Im2winCase
        Any.
    data : LayerData
        Its arrays, on the device or on the host.

    Attributes
    ----------
    tolerance : float
        Of the relative error: TF32 would not keep it.
    parts : list of tuple
        What is looked at.
    """

    tolerance = 1e-4

    def __init__(self, case: Im2winCase, data: LayerData) -> None:
        problem = case.problem
        self.parts: list[Part] = [
            (image, row) for image in sorted({0, problem.images - 1}) for row in sorted({0, problem.out_height - 1})
        ]
        filters = to_host(data.filters[0][-_MAX_FILTERS:]).astype(np.float64)
        self._rows = {
            (image, row): _output_row(problem, to_host(data.images[0][image]).astype(np.float64), filters, row)
            for image, row in self.parts
        }

    def error(self, part: Part, answer: Any) -> float:
        """Return the relative error of a row (filters, columns), as `read_row` cuts it."""
        return relative_error(answer.astype(np.float64), self._rows[part])

    @staticmethod
    def read_row(result: Any, part: Part) -> Any:
        """Read a row of the last filters of an output (images, filters, rows, columns)."""
        image, row = part
        return to_host(result[image, -_MAX_FILTERS:, row])


def _output_row(
    problem: Im2winProblem, image: NDArray[np.float64], filters: NDArray[np.float64], row: int
) -> NDArray[np.float64]:
    top = row * problem.stride
    band = image[:, top : top + problem.filter_height]
    windows = np.lib.stride_tricks.sliding_window_view(band, problem.filter_width, axis=2)[:, :, :: problem.stride]
    sums: NDArray[np.float64] = np.tensordot(filters, windows, axes=([1, 2, 3], [0, 1, 3]))
    return sums
