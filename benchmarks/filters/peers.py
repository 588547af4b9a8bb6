"""Peers: CuPy's ``ndimage``, and PyTorch's ``conv2d``, which cuDNN computes, with what gives the product's answer."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.filters.cases import FilterCase
from benchmarks.filters.data import Expected, FilterData
from benchmarks.harness.contender import Attempt, Contender, rotating
from xcorr_app.filtering.named import gaussian

_LARGEST_SIGMA = 8.0  # beyond it, conv2d takes seconds


def cupy_contenders(case: FilterCase) -> Iterator[Contender]:
    """Yield CuPy's contender for a case: none where every width is timed."""
    if not case.group:
        yield Contender("CuPy gaussian_filter" if case.sigma else "CuPy correlate", _ndimage)


def torch_contenders(case: FilterCase) -> Iterator[Contender]:
    """Yield PyTorch's contender for a case: none where every width is timed, and for wide Gaussians."""
    if not case.group and case.sigma <= _LARGEST_SIGMA:
        yield Contender("PyTorch conv2d", _attempts)


def _ndimage(case: FilterCase, data: FilterData) -> Iterator[Attempt]:
    cupy, ndimage = (importlib.import_module(name) for name in ("cupy", "cupyx.scipy.ndimage"))
    weights = cupy.asarray(data.taps)[None]

    def work(stack: Any, out: Any) -> Any:
        if case.sigma:
            ndimage.gaussian_filter(stack, (0, case.sigma, case.sigma), output=out, mode=case.boundary)
        else:
            ndimage.correlate(stack, weights, output=out, mode=case.boundary)
        return out

    works = [partial(work, stack, cupy.empty_like(stack)) for stack in data.stacks]
    yield rotating(works, Expected.read_corner)


class TorchFilter:
    """A filter as convolutions of one channel: pad as the boundary asks, convolve; twice for a Gaussian.

    Integer images are converted to float32 before, and rounded and converted back after.

    Parameters
    ----------
    case : FilterCase
        Any.
    data : FilterData
        Of the case.
    """

    def __init__(self, case: FilterCase, data: FilterData) -> None:
        self._torch, self._case, passes = importlib.import_module("torch"), case, [data.taps]
        if case.sigma:
            ((column, row),) = gaussian(case.sigma).terms
            passes = [column[:, None], row[None, :]]
        self._weights = [
            self._torch.as_tensor(np.ascontiguousarray(each, np.float32), device="cuda")[None, None] for each in passes
        ]

    def __call__(self, stack: Any) -> Any:
        """Filter a stack (images, 1, height, width), float32 or int16; returns the same type."""
        torch = self._torch
        values = stack.to(torch.float32)
        for weights in self._weights:
            values = self._pass(values, weights)
        return values if self._case.element == "float32" else values.round_().clamp_(0, 32767).to(torch.int16)

    def _pass(self, values: Any, weights: Any) -> Any:
        functional = self._torch.nn.functional
        rows, columns = weights.shape[-2:]
        around = (rows // 2, columns // 2)
        if self._case.boundary == "constant" and rows % 2 and columns % 2:
            return functional.conv2d(values, weights, padding=around)
        sides = (around[1], columns - 1 - around[1], around[0], rows - 1 - around[0])
        mode = {"mirror": "reflect", "constant": "constant"}[self._case.boundary]
        return functional.conv2d(functional.pad(values, sides, mode=mode), weights)


def _attempts(case: FilterCase, data: FilterData) -> Iterator[Attempt]:
    torch, filtered = importlib.import_module("torch"), TorchFilter(case, data)
    # The same bytes: counts below 2^15 read alike as int16.
    arrays = [stack.view(np.int16) if case.element == "uint16" else stack for stack in data.stacks]
    works = [partial(filtered, torch.as_tensor(array, device="cuda")[:, None]) for array in arrays]
    yield rotating(works, Expected.read_corner, "torch")
