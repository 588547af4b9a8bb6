"""Peers: one pair from a Python call to the plane on the device, as a user of each library would write it."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.fft import next_fast_len

from benchmarks.correlation.cases import Case
from benchmarks.correlation.data import Data
from benchmarks.harness.contender import Attempt, plane_at
from xcorr_app.gpu.direct.problem import Problem


def torch_fft_call(case: Case, data: Data) -> Iterator[Attempt]:
    """``irfft2(rfft2(left) * rfft2(right).conj())`` of the padded size."""
    torch = importlib.import_module("torch")
    left, right = (torch.as_tensor(array[0], device="cuda") for array in (data.lefts, data.rights))
    grid = [next_fast_len(n, real=True) for n in case.problem.plane_shape]

    def call() -> Any:
        product = torch.fft.rfft2(left, s=grid) * torch.fft.rfft2(right, s=grid).conj()
        return torch.fft.irfft2(product, s=grid)

    yield Attempt(call, lambda plane, _: from_circular(plane_at(plane[None], 0), case.problem), "torch call")


def from_circular(plane: Any, problem: Problem) -> Any:
    """Bring a circular plane, whose first element is shift zero, into the order of the window."""
    rolled = np.roll(plane, [-first for first in problem.first_shift], axis=(0, 1))
    return rolled[: problem.plane_shape[0], : problem.plane_shape[1]]


def cupyx_correlate(_: Case, data: Data) -> Iterator[Attempt]:
    """``cupyx.scipy.signal.correlate(left, right, method="fft")``."""
    signal = _cupyx_signal()
    left, right = data.lefts[0], data.rights[0]
    yield _cupyx(lambda: signal.correlate(left, right, mode="full", method="fft"))


def cupyx_correlate2d(_: Case, data: Data) -> Iterator[Attempt]:
    """``cupyx.scipy.signal.correlate2d(left, right)``."""
    signal = _cupyx_signal()
    left, right = data.lefts[0], data.rights[0]
    yield _cupyx(lambda: signal.correlate2d(left, right, mode="full"))


def _cupyx_signal() -> Any:
    with warnings.catch_warnings():
        # On import CuPy warns of a part of its own that is not used here.
        warnings.simplefilter("ignore", FutureWarning)
        return importlib.import_module("cupyx.scipy.signal")


def _cupyx(call: Callable[[], Any]) -> Attempt:
    return Attempt(call, lambda plane, _: plane.get(), "cupy call")
