"""The suite of ``python -m benchmarks pointwise``."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.harness.clock import Clock
from benchmarks.harness.contender import Contender
from benchmarks.harness.suite import Suite
from benchmarks.pointwise.cases import CASES, PointwiseCase
from benchmarks.pointwise.cupy_peers import cupy_contenders
from benchmarks.pointwise.data import Expected, random_mixing
from benchmarks.pointwise.own import own_contenders
from benchmarks.pointwise.torch_peers import torch_contenders


def _contenders(case: PointwiseCase) -> Iterator[Contender]:
    yield from own_contenders(case)
    yield from cupy_contenders(case)


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
    _contenders,
    torch_contenders,
    clock=Clock(repeats=5, min_seconds=0.004),  # there are many cases
)
