"""The suite of ``python -m benchmarks pointwise``."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.harness.clock import Clock
from benchmarks.harness.contender import Contender
from benchmarks.pointwise.cases import CASES, MEAN_GOALS, PointwiseCase
from benchmarks.pointwise.cupy_peers import cupy_contenders
from benchmarks.pointwise.data import Expected, random_mixing
from benchmarks.pointwise.own import own_contenders
from benchmarks.pointwise.torch_peers import torch_contenders
from benchmarks.work.suite import Suite

__all__ = ["POINTWISE"]


def _contenders(case: PointwiseCase) -> Iterator[Contender]:
    yield from own_contenders(case)
    yield from cupy_contenders(case)


POINTWISE = Suite(
    "pointwise",
    CASES,
    random_mixing,
    Expected,
    _contenders,
    torch_contenders,
    clock=Clock(repeats=5, min_seconds=0.004),  # there are many cases
    mean_goals=MEAN_GOALS,
)
