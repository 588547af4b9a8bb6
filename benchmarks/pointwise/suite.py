"""The suite of ``python -m benchmarks pointwise``: the product's choice and its neighbours, beside peers."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from benchmarks.harness.clock import Clock
from benchmarks.harness.contender import Attempt, Contender, rotating
from benchmarks.harness.suite import Suite
from benchmarks.pointwise.cases import CASES, PointwiseCase
from benchmarks.pointwise.data import Expected, MixingData, random_mixing
from benchmarks.pointwise.peers import cupy_contenders, torch_contenders
from xcorr_app.filtering.mixing import mix
from xcorr_app.gpu.pointwise.kernels import kernel_for
from xcorr_app.gpu.pointwise.mix import MIX_CHANNELS
from xcorr_app.gpu.pointwise.problem import PointwiseProblem
from xcorr_app.gpu.pointwise.run import mixing_launches
from xcorr_app.gpu.runtime.placement import current_device

_ALIGNED = 256
"""Bytes, at least, of which CuPy's addresses are multiples: more than any kernel asks for."""


def own_contenders(case: PointwiseCase) -> Iterator[Contender]:
    """Yield what the product can do a case with."""
    yield Contender("pointwise_on_device", mixing_attempts("auto", {}), choice="auto")
    if max(case.channels, case.filters) > MIX_CHANNELS:
        yield Contender("kernel blocking", mixing_attempts("blocking", {}), choice="blocking")


def mixing_attempts(kernel: str, tuning: Mapping[str, int]) -> Callable[[PointwiseCase, MixingData], Iterator[Attempt]]:
    """Make attempts of a kernel."""

    def attempts(case: PointwiseCase, data: MixingData) -> Iterator[Attempt]:
        cupy, shape = importlib.import_module("cupy"), (case.images, case.filters, case.side, case.side)
        nonsense: Any = np.nan if case.result == "float32" else 0xABAB
        types: dict[str, Any] = {"image_type": case.element, "result_type": case.result}
        problem = PointwiseProblem(case.images, case.channels, case.filters, case.pixels, **types)
        chosen = kernel_for(problem) if kernel == "auto" else kernel
        if chosen is None:
            by_library = partial(mix, axis=1, target=np.dtype(np.float32), convert=None, clip=False)
            works = [partial(by_library, *pair) for pair in zip(data.stacks, data.matrices, strict=True)]
            yield rotating(works, lambda result, part: Expected.read_planar(result[0], part))
            return
        how = (current_device(), problem, chosen, _ALIGNED, tuple(sorted(tuning.items())), 1.0)

        def work(launches: Any, stack: Any, out: Any) -> Any:
            for part, values in launches:
                part.run(stack[part.first :], out[part.first :], out, *values)
            return out

        # As a network would: its weights are brought into the kernels' order once.
        works = [
            partial(work, mixing_launches(how, data.matrix), stack, cupy.full(shape, nonsense, case.result))
            for stack in data.stacks
        ]
        yield rotating(works, Expected.read_planar)

    return attempts


POINTWISE = Suite(
    "pointwise",
    """Time channel mixing and the pointwise layers of three networks beside matrix products.

    Unmixing of 2 to 32 channels, and the 41 different layers of MobileNetV1, MobileNetV2 and EfficientNet-B0 at batch
    1, 32 and 128. Every answer is checked against float64 before it is timed. Peers are matmul of CuPy and PyTorch and
    conv2d in both layouts, without TF32, with cuDNN's search.
    """,
    CASES,
    random_mixing,
    Expected,
    lambda case: chain(own_contenders(case), cupy_contenders(case)),
    torch_contenders,
    clock=Clock(repeats=5, min_seconds=0.004),  # there are many cases
)
