"""The cases of ``python -m benchmarks im2win``: the twelve layers that Im2win was published with, batch 128.

Source: "Im2win: An Efficient Convolution Paradigm on GPU", arXiv:2306.14316, table 3. The window transform is part of
every time; its traffic is no part of the floor, which is images, filters and output once.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.work.case import Work
from benchmarks.work.goals import Goal
from xcorr_app.gpu.im2win.problem import LAYERS, Im2winProblem

__all__ = ["AHEAD_OF_CUDNN", "CASES", "Im2winCase"]

AHEAD_OF_CUDNN = (1, 2, 3, 4, 7, 9, 12)
"""Layers on which the best FP32 algorithm of cuDNN stays below 0.6 of the FMA rate."""
_RATE = 0.55


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
    goals = [Goal("rate fraction", _RATE), Goal("peer memory", 1.0)]
    if number in AHEAD_OF_CUDNN:
        goals.insert(1, Goal("peer speed", 1.0))
    return Im2winCase(name=f"layer {number:02d}: {sizes}", problem=problem, goals=tuple(goals), in_quick=True)


CASES: tuple[Im2winCase, ...] = tuple(_layer(number, problem) for number, problem in LAYERS.items())
"""Every case, in the order in which they are run."""
