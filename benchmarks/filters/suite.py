"""The suite of ``python -m benchmarks filter``: the product's kernels and its public call, beside peers."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any, cast

import numpy as np

from benchmarks.filters.cases import CASES, FilterCase
from benchmarks.filters.data import Expected, FilterData, random_stack
from benchmarks.filters.peers import cupy_contenders, torch_contenders
from benchmarks.harness.contender import Attempt, Contender, rotating
from benchmarks.harness.suite import Suite
from xcorr_app.filtering import named
from xcorr_app.filtering.boundary import Mode
from xcorr_app.filtering.convolve import filter_frames, filter_taps
from xcorr_app.gpu.stencil.problem import FilterProblem
from xcorr_app.gpu.stencil.reuse_run import prepare_filter

_LARGEST_FUSED = 16.0
"""Sigma up to which one fused pass over rows and columns is timed."""
_SMALLEST_SLIDING = 4.0

Start = Callable[[Any, Any], Any]
"""Filters a stack into an array."""
Attempts = Callable[[FilterCase, FilterData], Iterator[Attempt]]


def own_contenders(case: FilterCase) -> Iterator[Contender]:
    """Yield what the product can do a case with."""
    if case.group:
        yield Contender("kernel", kernel_attempts("auto", {}), choice="auto")
        return
    yield Contender("filter_taps", _public, choice="auto")
    if case.task != "gaussian":
        yield Contender("kernel", kernel_attempts("auto", {}), choice="kernel")
        return
    if case.sigma <= _LARGEST_FUSED:
        yield Contender("separable", _gaussian_attempts("separable"), choice="separable")
    if case.sigma >= _SMALLEST_SLIDING:
        yield Contender("sliding", _gaussian_attempts("sliding"), choice="sliding")


def _into(start_of: Callable[[FilterCase, FilterData], Start]) -> Attempts:
    """Make attempts of work that writes into given arrays, which hold nonsense before."""

    def attempts(case: FilterCase, data: FilterData) -> Iterator[Attempt]:
        cupy, start = importlib.import_module("cupy"), start_of(case, data)
        nonsense = np.nan if case.element == "float32" else 0xABAB

        def work(stack: Any, out: Any) -> Any:
            start(stack, out)
            return out

        works = [partial(work, stack, cupy.full(stack.shape, nonsense, stack.dtype)) for stack in data.stacks]
        yield rotating(works, Expected.read_corner)

    return attempts


def kernel_attempts(kernel: str, tuning: Mapping[str, int]) -> Attempts:
    """Make attempts of a filter kernel."""

    def start_of(case: FilterCase, data: FilterData) -> Start:
        problem = FilterProblem((case.height, case.width), data.taps.shape, case.images, case.boundary)
        types: dict[str, Any] = {"image_type": case.element, "result_type": case.element}
        run = prepare_filter(problem, data.taps, **types, kernel=kernel, tuning=tuning)
        return lambda stack, out: run(stack, out, None)

    return _into(start_of)


def _gaussian_attempts(kernel: Any) -> Attempts:
    """Make attempts of a kernel for Gaussians, by its name."""

    def start_of(case: FilterCase, _: FilterData) -> Start:
        run = partial(filter_frames, taps=named.gaussian(case.sigma), mode=cast("Mode", case.boundary))
        return lambda stack, out: run(stack, kernel=kernel, flip=False, out=out, count=False)

    return _into(start_of)


def _public(case: FilterCase, data: FilterData) -> Iterator[Attempt]:
    taps: Any = named.gaussian(case.sigma) if case.sigma else data.taps
    works = [partial(filter_taps, stack, taps, cast("Mode", case.boundary)) for stack in data.stacks]
    yield rotating(works, Expected.read_corner)


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
    lambda case: chain(own_contenders(case), cupy_contenders(case)),
    torch_contenders,
)
