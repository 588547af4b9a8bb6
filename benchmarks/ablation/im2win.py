"""What the document on Im2win evaluates: its twelve layers by every step, and beside direct, im2col and cuDNN.

Time and device memory of a whole call, the window transform included. Steps are added one by one to the basic form, and
left out one by one of the full kernel.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from benchmarks.ablation.correlation import CLOCK
from benchmarks.ablation.cudnn import ALGORITHMS, Convolution2d
from benchmarks.ablation.direct_convolution import direct_attempts
from benchmarks.harness.contender import Attempt, Contender
from benchmarks.im2win.cases import CASES, Im2winCase
from benchmarks.im2win.data import Expected, LayerData, random_layer
from benchmarks.im2win.own import layer_attempts
from benchmarks.im2win.torch_peers import torch_contenders
from benchmarks.work.rotation import rotating
from benchmarks.work.suite import Suite
from xcorr_app.gpu.im2win.launches import ABLATION, STEPS

__all__ = ["IM2WIN"]

_GROUP, _QUICK = "layer", ("01:", "03:", "05:", "07:", "09:", "12:")


def _cases() -> Iterator[Im2winCase]:
    for case in CASES:
        name = case.name.replace("layer ", f"{_GROUP}: ")
        yield replace(case, name=name, group=_GROUP, goals=(), in_quick=name.split()[1] in _QUICK)


def _own(_: Im2winCase) -> Iterator[Contender]:
    yield Contender("direct", direct_attempts)
    yield Contender("basic form", layer_attempts({"form": "im2win-basic"}), choice="basic")
    for name, tuning in STEPS.items():
        yield Contender(name, layer_attempts({"form": "im2win", "tuning": tuning}), choice=name)
    for name, tuning in ABLATION.items():
        yield Contender(f"all but: {name}", layer_attempts({"form": "im2win", "tuning": tuning}), choice=name)
    yield Contender("implicit window tensor", layer_attempts({"form": "implicit"}), choice="implicit")
    yield Contender("as chosen", layer_attempts({}), choice="auto")


def _of_torch(case: Im2winCase, search: bool) -> Iterator[Contender]:
    if not search:
        return
    yield from torch_contenders(case, search)
    yield Contender("im2col + GEMM, PyTorch", _unfolded)
    for name, number in ALGORITHMS.items():
        yield Contender(f"cuDNN, {name}", _by_cudnn(number))


def _by_cudnn(algorithm: int) -> Callable[[Im2winCase, LayerData], Iterator[Attempt]]:
    def attempts(case: Im2winCase, data: LayerData) -> Iterator[Attempt]:
        pairs = _tensors(data)
        shapes = (tuple(tensor.shape) for tensor in pairs[0])
        convolution = Convolution2d(algorithm, *shapes, stride=case.problem.stride)
        works = [lambda images=images, filters=filters: convolution(images, filters) for images, filters in pairs]
        yield rotating(works, Expected.read_row, "torch", convolution.note)

    return attempts


def _unfolded(case: Im2winCase, data: LayerData) -> Iterator[Attempt]:
    """The matrix of all windows, then one product an image."""
    torch, problem = importlib.import_module("torch"), case.problem

    def work(images: Any, filters: Any) -> Any:
        size = (problem.filter_height, problem.filter_width)
        columns = torch.nn.functional.unfold(images, size, stride=problem.stride)
        product = torch.matmul(filters.flatten(1), columns)
        return product.view(problem.images, problem.filters, problem.out_height, problem.out_width)

    works = [lambda images=images, filters=filters: work(images, filters) for images, filters in _tensors(data)]
    yield rotating(works, Expected.read_row, "torch")


def _tensors(data: LayerData) -> list[tuple[Any, Any]]:
    torch = importlib.import_module("torch")
    return [
        (torch.as_tensor(images, device="cuda"), torch.as_tensor(filters, device="cuda"))
        for images, filters in zip(data.images, data.filters, strict=True)
    ]


IM2WIN = Suite(
    "ablation-im2win", tuple(_cases()), random_layer, Expected, _own, _of_torch, clock=CLOCK, measures_memory=True
)
