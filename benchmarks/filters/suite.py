"""The suite of ``python -m benchmarks filter``."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.filters.cases import CASES, FilterCase
from benchmarks.filters.cupy_peers import cupy_contenders
from benchmarks.filters.data import Expected, random_stack
from benchmarks.filters.own import own_contenders
from benchmarks.filters.torch_peers import torch_contenders
from benchmarks.harness.contender import Contender
from benchmarks.harness.suite import Suite


def _contenders(case: FilterCase) -> Iterator[Contender]:
    yield from own_contenders(case)
    yield from cupy_contenders(case)


FILTERS = Suite(
    "filter",
    """Time the filter kernels, CuPy's ndimage and PyTorch's conv2d (cuDNN).

    Square filters of every width from 1 to 63, Gaussians, float32 and uint16, stacks and single images, one Python
    call. Every answer is checked against float64 before it is timed. PyTorch runs without TF32, with cuDNN's
    search for its fastest algorithm.
    """,
    CASES,
    random_stack,
    Expected,
    _contenders,
    torch_contenders,
)
