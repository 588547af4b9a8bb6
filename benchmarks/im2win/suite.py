"""The suite of ``python -m benchmarks im2win``."""

from __future__ import annotations

from benchmarks.harness.suite import Suite
from benchmarks.im2win.cases import CASES
from benchmarks.im2win.data import Expected, random_layer
from benchmarks.im2win.own import own_contenders
from benchmarks.im2win.torch_peers import torch_contenders

IM2WIN = Suite(
    "im2win",
    """Time Im2win and cuDNN on the twelve published layers, with the device memory that each takes.

    The window transform is part of every time. Every answer is checked against float64 before it is timed. PyTorch runs
    without TF32, with cuDNN's search for its fastest algorithm; the note says which kind of algorithm it ran. Every
    step of the kernel: `python -m benchmarks ablation`.
    """,
    CASES,
    random_layer,
    Expected,
    own_contenders,
    torch_contenders,
    measures_memory=True,
)
