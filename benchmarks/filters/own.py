"""The product's own contenders in ``python -m benchmarks filter``: its kernels, and the public call."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import numpy as np

from benchmarks.filters.cases import FilterCase
from benchmarks.filters.data import Expected, FilterData
from benchmarks.harness.contender import Attempt, Contender, rotating
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
        cupy = importlib.import_module("cupy")
        start = start_of(case, data)
        nonsense = np.nan if case.element == "float32" else 0xABAB
        outs = [cupy.full(stack.shape, nonsense, stack.dtype) for stack in data.stacks]

        def work(stack: Any, out: Any) -> Callable[[], Any]:
            return lambda: start(stack, out)

        works = [work(stack, out) for stack, out in zip(data.stacks, outs, strict=True)]
        yield rotating(works, Expected.read_corner)

    return attempts


def kernel_attempts(kernel: str, tuning: Mapping[str, int]) -> Attempts:
    """Make attempts of a filter kernel."""

    def start_of(case: FilterCase, data: FilterData) -> Start:
        @functools.cache
        def run_for(shape: tuple[int, ...]) -> Callable[[Any, Any, Any], None]:
            problem = FilterProblem((shape[-2], shape[-1]), data.taps.shape, math.prod(shape[:-2]), case.boundary)
            return prepare_filter(
                problem,
                data.taps,
                image_type=case.element,
                result_type=case.element,
                kernel=kernel,
                tuning=tuning,
            )

        def start(stack: Any, out: Any) -> Any:
            run_for(stack.shape)(stack, out, None)
            return out

        return start

    return _into(start_of)


def _gaussian_attempts(kernel: Any) -> Attempts:
    """Make attempts of a kernel for Gaussians, by its name."""

    def start_of(case: FilterCase, _: FilterData) -> Start:
        run = functools.partial(filter_frames, taps=named.gaussian(case.sigma), mode=cast("Mode", case.boundary))
        return lambda stack, out: run(stack, kernel=kernel, flip=False, out=out, count=False)[0]

    return _into(start_of)


def _public(case: FilterCase, data: FilterData) -> Iterator[Attempt]:
    taps: Any = named.gaussian(case.sigma) if case.sigma else data.taps

    def work(stack: Any) -> Callable[[], Any]:
        return lambda: filter_taps(stack, taps, cast("Mode", case.boundary))

    yield rotating([work(stack) for stack in data.stacks], Expected.read_corner)
