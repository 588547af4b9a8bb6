"""The suite of ``xcorr bench pointwise``."""

from __future__ import annotations

from collections.abc import Iterator

from xcorr_app.bench.clock import Clock
from xcorr_app.bench.contender import Contender
from xcorr_app.bench.pointwise.cases import CASES, MEAN_GOALS, PointwiseCase
from xcorr_app.bench.pointwise.cupy_peers import cupy_contenders
from xcorr_app.bench.pointwise.data import Expected, random_mixing
from xcorr_app.bench.pointwise.own import own_contenders
from xcorr_app.bench.pointwise.torch_peers import torch_contenders
from xcorr_app.bench.work.suite import Suite

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
    clock=Clock(repeats=5, least_seconds=0.004),  # there are many cases
    mean_goals=MEAN_GOALS,
)
