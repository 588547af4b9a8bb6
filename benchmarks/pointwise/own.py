"""The product's own contenders in ``python -m benchmarks pointwise``: its choice, and its neighbours."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness.contender import Attempt, Contender, rotating
from benchmarks.pointwise.cases import PointwiseCase
from benchmarks.pointwise.data import Expected, MixingData
from xcorr_app.filtering.mixing import mix
from xcorr_app.gpu.pointwise.blocking import stored_matrix
from xcorr_app.gpu.pointwise.kernels import kernel_for
from xcorr_app.gpu.pointwise.mix import MIX_CHANNELS
from xcorr_app.gpu.pointwise.problem import PointwiseProblem
from xcorr_app.gpu.pointwise.run import pointwise_on_device


def own_contenders(case: PointwiseCase) -> Iterator[Contender]:
    """Yield what the product can do a case with."""
    yield Contender("pointwise_on_device", mixing_attempts("auto", {}), choice="auto")
    if max(case.channels, case.filters) > MIX_CHANNELS:
        yield Contender("kernel blocking", mixing_attempts("blocking", {}), choice="blocking")


def mixing_attempts(kernel: str, tuning: Mapping[str, int]) -> Callable[[PointwiseCase, MixingData], Iterator[Attempt]]:
    """Make attempts of a kernel."""

    def attempts(case: PointwiseCase, data: MixingData) -> Iterator[Attempt]:
        cupy = importlib.import_module("cupy")
        shape = (case.images, case.filters, case.side, case.side)
        nonsense: Any = np.nan if case.result == "float32" else 0xABAB
        if kernel == "auto" and kernel_for(_problem(case)) is None:
            works = [
                partial(_by_library, stack, matrix) for stack, matrix in zip(data.stacks, data.matrices, strict=True)
            ]
            yield rotating(works, Expected.read_planar)
            return
        options: dict[str, Any] = {"target": np.dtype(case.result), "kernel": kernel, "tuning": dict(tuning) or None}
        matrices: list[Any] = [data.matrix] * len(data.stacks)
        if not _takes_argument(case, kernel):
            # As a network would: its weights are brought into the kernels' order once.
            matrices = [stored_matrix(matrix, cupy) for matrix in data.matrices]
        works = [
            partial(pointwise_on_device, stack, matrix, 1, out=cupy.full(shape, nonsense, case.result), **options)
            for stack, matrix in zip(data.stacks, matrices, strict=True)
        ]
        yield rotating(works, Expected.read_planar)

    return attempts


def _by_library(stack: Any, matrix: Any) -> Any:
    return mix(stack, matrix, 1, np.dtype(np.float32), None, clip=False)[0]


def _takes_argument(case: PointwiseCase, kernel: str) -> bool:
    """Whether the matrix is an argument of the kernel, from host memory."""
    return (kernel_for(_problem(case)) if kernel == "auto" else kernel) == "mix"


def _problem(case: PointwiseCase) -> PointwiseProblem:
    return PointwiseProblem(
        case.images, case.channels, case.filters, case.pixels, image_type=case.element, result_type=case.result
    )
