"""The twelve layers that Im2win was published with, batch 128.

Source: "Im2win: An Efficient Convolution Paradigm on GPU", arXiv:2306.14316, table 3. The window transform is part of
every time; its traffic is no part of the floor, which is images, filters and output once.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.harness.case import Work
from xcorr_app.gpu.im2win.problem import LAYERS, Im2winProblem


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
