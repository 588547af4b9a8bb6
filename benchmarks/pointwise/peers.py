"""Peers of the pointwise convolution: ``matmul`` of CuPy and PyTorch, and ``conv2d``; planes or interleaved."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness.contender import Attempt, Contender, rotating
from benchmarks.pointwise.cases import PointwiseCase
from benchmarks.pointwise.data import Expected, MixingData

FORMS = {
    "PyTorch matmul, interleaved": "interleaved",
    "PyTorch matmul, planes": "planes",
    "PyTorch conv2d": "conv2d",
    "PyTorch conv2d, channels last": "channels last",
}


def cupy_contenders(_: PointwiseCase) -> Iterator[Contender]:
    """Yield CuPy's contender for a case."""
    yield Contender("CuPy matmul", _matmul)


def torch_contenders(case: PointwiseCase) -> Iterator[Contender]:
    """Yield PyTorch's contenders for a case."""
    for name, form in FORMS.items():
        of_layers_only = form in ("interleaved", "channels last")
        if case.task == "layer" or not of_layers_only:
            yield Contender(name, partial(_attempts, form))


def _matmul(case: PointwiseCase, data: MixingData) -> Iterator[Attempt]:
    cupy = importlib.import_module("cupy")
    shape = (case.images, case.filters, case.pixels)

    def work(matrix: Any, stack: Any, out: Any) -> Any:
        """Multiply in float32, with the conversions that integers need."""
        mixed = cupy.matmul(matrix, stack.astype(np.float32, copy=False), out=out)
        if case.result == "float32":
            return mixed
        limits = np.iinfo(case.result)
        return cupy.clip(cupy.rint(mixed, out=mixed), limits.min, limits.max, out=mixed).astype(case.result)

    works = [
        partial(work, matrix, stack.reshape(case.images, case.channels, case.pixels), cupy.empty(shape, np.float32))
        for matrix, stack in zip(data.matrices, data.stacks, strict=True)
    ]
    yield rotating(works, Expected.read_planar)


def _mixed(form: str, result: str, stack: Any, matrix: Any) -> Any:
    """Mix channels as a user of PyTorch would."""
    torch = importlib.import_module("torch")
    values = stack.to(torch.float32)
    if form == "interleaved":
        product = values @ matrix.T
    elif form == "planes":
        product = torch.matmul(matrix, values.flatten(2))
    else:
        product = torch.nn.functional.conv2d(values, matrix[:, :, None, None])
    return product if result == "float32" else product.round_().clamp_(0, 32767).to(torch.int16)


def _attempts(form: str, case: PointwiseCase, data: MixingData) -> Iterator[Attempt]:
    torch = importlib.import_module("torch")
    # The same bytes: counts below 2^15 read alike as int16.
    arrays = [stack.view(np.int16) if case.element == "uint16" else stack for stack in data.stacks]
    works = []
    for array, weights in zip(arrays, data.matrices, strict=True):
        stack, matrix = (torch.as_tensor(each, device="cuda") for each in (array, weights))
        if form == "interleaved":
            stack = stack.flatten(2).transpose(1, 2).contiguous()
        elif form == "channels last":
            stack = stack.to(memory_format=torch.channels_last)
        works.append(partial(_mixed, form, case.result, stack, matrix))
    read = Expected.read_interleaved if form == "interleaved" else Expected.read_planar
    yield rotating(works, read, "torch")
