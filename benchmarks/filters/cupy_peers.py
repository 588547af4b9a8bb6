"""Peers through CuPy: ``cupyx.scipy.ndimage``."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from benchmarks.filters.cases import FilterCase
from benchmarks.filters.data import Expected, FilterData
from benchmarks.harness.contender import Attempt, Contender, rotating


def cupy_contenders(case: FilterCase) -> Iterator[Contender]:
    """Yield CuPy's contender for a case: none where every width is timed."""
    if not case.group:
        yield Contender("CuPy gaussian_filter" if case.sigma else "CuPy correlate", _ndimage)


def _ndimage(case: FilterCase, data: FilterData) -> Iterator[Attempt]:
    cupy = importlib.import_module("cupy")
    ndimage = importlib.import_module("cupyx.scipy.ndimage")
    weights = cupy.asarray(data.taps)

    def start(stack: Any, out: Any) -> Any:
        if case.sigma:
            return ndimage.gaussian_filter(stack, (0, case.sigma, case.sigma), output=out, mode=case.boundary)
        return ndimage.correlate(stack, weights[None], output=out, mode=case.boundary)

    outs = [cupy.empty_like(stack) for stack in data.stacks]
    works: list[Callable[[], Any]] = [
        partial(_started, start, stack, out) for stack, out in zip(data.stacks, outs, strict=True)
    ]
    yield rotating(works, Expected.read_corner)


def _started(start: Callable[[Any, Any], Any], stack: Any, out: Any) -> Any:
    start(stack, out)
    return out
