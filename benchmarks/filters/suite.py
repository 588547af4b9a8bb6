"""The suite of ``python -m benchmarks filter``."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.filters.cases import CASES, FilterCase
from benchmarks.filters.cupy_peers import cupy_contenders
from benchmarks.filters.data import Expected, random_stack
from benchmarks.filters.own import own_contenders
from benchmarks.filters.torch_peers import torch_contenders
from benchmarks.harness.contender import Contender
from benchmarks.work.suite import Suite

__all__ = ["FILTERS"]


def _contenders(case: FilterCase) -> Iterator[Contender]:
    yield from own_contenders(case)
    yield from cupy_contenders(case)


FILTERS = Suite("filter", CASES, random_stack, Expected, _contenders, torch_contenders)
