"""What the document on Im2win evaluates: its twelve layers by every step, and beside direct, im2col and cuDNN.

Time and device memory of a whole call, the window transform included. Steps are added one by one to the basic form, and
left out one by one of the full kernel. A second group has the forms without tiles, Algorithms 1 and 2, beside MEC (Cho
and Brand, arXiv:1706.06873), which lowers windows along the rows alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.ablation.correlation import CLOCK, QUICK
from benchmarks.ablation.cudnn import ALGORITHMS, Convolution2d
from benchmarks.ablation.direct_convolution import direct_attempts
from benchmarks.harness.contender import Attempt, Contender, rotating
from benchmarks.harness.suite import Suite
from benchmarks.im2win.data import CASES, Expected, Im2winCase, LayerData, random_layer
from xcorr_app.gpu.im2win.options import ABLATION, STEPS, Im2winOptions, kernel_and_macros
from xcorr_app.gpu.im2win.problem import stored_filters
from xcorr_app.gpu.im2win.run import bound_form

_GROUP, _PLAIN, _QUICK = "layer", "plain forms and MEC", ("01:", "03:", "05:", "07:", "09:", "12:")


def _cases() -> Iterator[Im2winCase]:
    for group in (_GROUP, _PLAIN):
        for case in CASES:
            name = case.name.replace("layer ", f"{group}: ")
            quick = group == _GROUP and name.split()[1] in _QUICK
            yield replace(case, name=name, group=group, in_quick=quick)


def _own(case: Im2winCase) -> Iterator[Contender]:
    if case.group == _PLAIN:
        for name in ("implicit-basic", "im2win-basic", "implicit"):
            yield Contender(name, layer_attempts(name), choice=name)
        return
    yield Contender("direct", direct_attempts)
    yield Contender("basic form", layer_attempts("im2win-basic"), choice="basic")
    for name, options in STEPS.items():
        yield Contender(name, layer_attempts(options), choice=name)
    for name, options in ABLATION.items():
        yield Contender(f"all but: {name}", layer_attempts(options), choice=name)
    yield Contender("implicit window tensor", layer_attempts("implicit"), choice="auto")


def layer_attempts(form: str | Im2winOptions) -> Callable[[Im2winCase, LayerData], Iterator[Attempt]]:
    """Make attempts of whole calls: transform and convolution, with memory from the pool."""
    kernel, macros = kernel_and_macros(form)

    def attempts(case: Im2winCase, data: LayerData) -> Iterator[Attempt]:
        cupy, p = importlib.import_module("cupy"), case.problem

        def work(convolution: Callable[[Any, Any], None], images: Any) -> Any:
            out = cupy.empty(p.out_shape, np.float32)
            convolution(images, out)
            return out

        # As a network would: its weights are brought into the kernels' order once.
        bound = (bound_form(kernel, p, stored_filters(filters), tuning=macros) for filters in data.filters)
        yield rotating([partial(work, *pair) for pair in zip(bound, data.images, strict=True)], Expected.read_row)

    return attempts


def _of_torch(case: Im2winCase) -> Iterator[Contender]:
    if case.group == _PLAIN:
        yield Contender("MEC, PyTorch", _lowered)
        return
    yield Contender("PyTorch conv2d", _conv2d)
    yield Contender("im2col + GEMM, PyTorch", _unfolded)
    for name, number in ALGORITHMS.items():
        yield Contender(f"cuDNN, {name}", _by_cudnn(number))


def _conv2d(case: Im2winCase, data: LayerData) -> Iterator[Attempt]:
    convolved = partial(importlib.import_module("torch").nn.functional.conv2d, stride=case.problem.stride)
    yield rotating([partial(convolved, *pair) for pair in _tensors(data)], Expected.read_row, "torch")


def _by_cudnn(algorithm: int) -> Callable[[Im2winCase, LayerData], Iterator[Attempt]]:
    def attempts(case: Im2winCase, data: LayerData) -> Iterator[Attempt]:
        pairs = _tensors(data)
        shapes = (tuple(tensor.shape) for tensor in pairs[0])
        convolution = Convolution2d(algorithm, *shapes, stride=case.problem.stride)
        works = [partial(convolution, *pair) for pair in pairs]
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

    yield rotating([partial(work, *pair) for pair in _tensors(data)], Expected.read_row, "torch")


def _lowered(case: Im2winCase, data: LayerData) -> Iterator[Attempt]:
    """Windows along the rows alone, and a product for every row of results, of which neighbours share rows."""
    torch, p = importlib.import_module("torch"), case.problem

    def work(images: Any, filters: Any) -> Any:
        columns = images.unfold(3, p.filter_width, p.stride).permute(3, 2, 1, 4, 0)  # of results, rows, C_i, F_w, N
        lowered = columns.reshape(p.out_width, p.height, p.channels * p.filter_width, p.images)
        taps = filters.permute(0, 2, 1, 3).reshape(p.filters, -1)
        out = torch.empty((p.out_height, p.out_width, p.filters, p.images), device="cuda")
        for row in range(p.out_height):
            window = lowered[:, row * p.stride : row * p.stride + p.filter_height].flatten(1, 2)
            torch.matmul(taps, window, out=out[row])
        return out

    works = [partial(work, *pair) for pair in _tensors(data)]
    yield rotating(works, lambda out, part: Expected.read_row(out.permute(3, 2, 0, 1), part), "torch")


def _tensors(data: LayerData) -> list[tuple[Any, Any]]:
    torch = importlib.import_module("torch")
    return [
        (torch.as_tensor(images, device="cuda"), torch.as_tensor(filters, device="cuda"))
        for images, filters in zip(data.images, data.filters, strict=True)
    ]


SUITE = Suite(
    "ablation-im2win",
    __doc__,
    tuple(_cases()),
    random_layer,
    Expected,
    _own,
    _of_torch,
    clock=CLOCK,
    quick=QUICK,
    measures_memory=True,
)
