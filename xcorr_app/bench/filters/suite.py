"""The suite of ``xcorr bench filter``."""

from __future__ import annotations

from collections.abc import Iterator

from xcorr_app.bench.contender import Contender
from xcorr_app.bench.filters.cases import CASES, FilterCase
from xcorr_app.bench.filters.cupy_peers import cupy_contenders
from xcorr_app.bench.filters.data import Expected, random_stack
from xcorr_app.bench.filters.own import own_contenders
from xcorr_app.bench.filters.torch_peers import torch_contenders
from xcorr_app.bench.work.suite import Suite

__all__ = ["FILTERS"]


def _contenders(case: FilterCase) -> Iterator[Contender]:
    yield from own_contenders(case)
    yield from cupy_contenders(case)


FILTERS = Suite("filter", CASES, random_stack, Expected, _contenders, torch_contenders)
