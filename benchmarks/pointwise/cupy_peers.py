"""Peers of the pointwise convolution through CuPy: ``matmul`` over planes."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness.contender import Attempt, Contender, rotating
from benchmarks.pointwise.cases import PointwiseCase
from benchmarks.pointwise.data import Expected, MixingData


def cupy_contenders(_: PointwiseCase) -> Iterator[Contender]:
    """Yield CuPy's contender for a case."""
    yield Contender("CuPy matmul", _matmul)


def _matmul(case: PointwiseCase, data: MixingData) -> Iterator[Attempt]:
    cupy = importlib.import_module("cupy")
    stacks = [stack.reshape(case.images, case.channels, case.pixels) for stack in data.stacks]
    works: list[Callable[[], Any]]
    if case.element == "float32":
        outs = [cupy.empty((case.images, case.filters, case.pixels), np.float32) for _ in stacks]
        works = [
            partial(cupy.matmul, matrix, stack, out=out)
            for matrix, stack, out in zip(data.matrices, stacks, outs, strict=True)
        ]
    else:
        works = [
            partial(_converted, cupy, matrix, stack, case.result)
            for matrix, stack in zip(data.matrices, stacks, strict=True)
        ]
    yield rotating(works, Expected.read_planar)


def _converted(cupy: Any, matrix: Any, stack: Any, result: str) -> Any:
    """Multiply in float32, with the conversions that integers need."""
    mixed = cupy.matmul(matrix, stack.astype(np.float32))
    if result == "float32":
        return mixed
    limits = np.iinfo(result)
    return cupy.clip(cupy.rint(mixed, out=mixed), limits.min, limits.max, out=mixed).astype(result)
