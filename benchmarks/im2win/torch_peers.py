"""The peer of Im2win: ``conv2d`` of PyTorch, which cuDNN computes, and what algorithm it took."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from benchmarks.harness.contender import Attempt, Contender, rotating
from benchmarks.im2win.cases import Im2winCase
from benchmarks.im2win.data import Expected, LayerData


def torch_contenders(_: Im2winCase) -> Iterator[Contender]:
    """Yield cuDNN for a layer."""
    yield Contender("PyTorch conv2d", _attempts)


def algorithm_of(kernels: Iterable[str]) -> str:
    """Name the algorithm from the kernels that ran."""
    names = " ".join(kernels).lower()
    for sign, algorithm in (("fft", "an FFT"), ("winograd", "Winograd"), ("gemm", "a matrix product")):
        if sign in names:
            return f"runs {algorithm}"
    return ""


def _attempts(case: Im2winCase, data: LayerData) -> Iterator[Attempt]:
    torch = importlib.import_module("torch")
    convolved = partial(torch.nn.functional.conv2d, stride=case.problem.stride)
    works: list[Callable[[], Any]] = [
        partial(convolved, *(torch.as_tensor(array, device="cuda") for array in arrays))
        for arrays in zip(data.images, data.filters, strict=True)
    ]
    yield rotating(works, Expected.read_row, "torch", remark=partial(_profiled, works[0]))


def _profiled(work: Callable[[], Any]) -> str:
    """Look which kernels run; where no profiler does, nothing is said."""
    profiler = importlib.import_module("torch.profiler")
    torch = importlib.import_module("torch")
    try:
        with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as profile:
            work()
            torch.cuda.synchronize()
        return algorithm_of(event.key for event in profile.key_averages())
    except Exception:  # noqa: BLE001 - a remark is not worth a failure
        return ""
