"""Peers through PyTorch: ``conv2d``, which cuDNN computes, with what it takes to get the product's answer from it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.filters.cases import FilterCase
from benchmarks.filters.data import Expected, FilterData
from benchmarks.harness.contender import Attempt, Contender, rotating
from xcorr_app.filtering.named import gaussian

_LARGEST_SIGMA = 8.0  # beyond it, conv2d takes seconds


def torch_contenders(case: FilterCase) -> Iterator[Contender]:
    """Yield PyTorch's contender for a case: none where every width is timed, and for wide Gaussians."""
    if not case.group and case.sigma <= _LARGEST_SIGMA:
        yield Contender("PyTorch conv2d", _attempts)


class TorchFilter:
    """A filter as convolutions of one channel: pad as the boundary asks, convolve; twice for a Gaussian.

    Integer images are converted to float32 before, and rounded and converted back after.

    Parameters
    ----------
    case : FilterCase
        Any.
    taps : ndarray
        Of the data.
    device : str
        ``"cuda"`` or ``"cpu"``.
    """

    def __init__(self, case: FilterCase, taps: NDArray[np.float32], device: str) -> None:
        self._torch = importlib.import_module("torch")
        self._padding = case.boundary
        self._integer = case.element != "float32"
        self._weights = [
            self._torch.as_tensor(np.ascontiguousarray(each, np.float32), device=device)[None, None]
            for each in _passes(case, taps)
        ]

    def __call__(self, stack: Any) -> Any:
        """Filter a stack (images, 1, height, width), float32 or int16; returns the same type."""
        torch = self._torch
        values = stack.to(torch.float32)
        for weights in self._weights:
            values = self._pass(values, weights)
        return values.round_().clamp_(0, 32767).to(torch.int16) if self._integer else values

    def _pass(self, values: Any, weights: Any) -> Any:
        functional = self._torch.nn.functional
        rows, columns = weights.shape[-2:]
        around = (rows // 2, columns // 2)
        if self._padding == "constant" and rows % 2 and columns % 2:
            return functional.conv2d(values, weights, padding=around)
        sides = (around[1], columns - 1 - around[1], around[0], rows - 1 - around[0])
        mode = {"mirror": "reflect", "constant": "constant"}[self._padding]
        return functional.conv2d(functional.pad(values, sides, mode=mode), weights)


def _passes(case: FilterCase, taps: NDArray[np.float32]) -> Sequence[NDArray[Any]]:
    if not case.sigma:
        return [taps]
    ((column, row),) = gaussian(case.sigma).terms
    return [column[:, None], row[None, :]]


def _attempts(case: FilterCase, data: FilterData) -> Iterator[Attempt]:
    torch = importlib.import_module("torch")
    filtered = TorchFilter(case, data.taps, "cuda")
    # The same bytes: counts below 2^15 read alike as int16.
    arrays = [stack.view(np.int16) if case.element == "uint16" else stack for stack in data.stacks]
    tensors = [torch.as_tensor(array, device="cuda")[:, None] for array in arrays]
    works: list[Callable[[], Any]] = [partial(filtered, tensor) for tensor in tensors]
    yield rotating(works, Expected.read_corner, "torch")
