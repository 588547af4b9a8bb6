"""The suite of ``python -m benchmarks correlation``."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.correlation.cases import CASES, Case
from benchmarks.correlation.check import Expected
from benchmarks.correlation.data import random_data
from benchmarks.correlation.own_kernels import own_contenders
from benchmarks.correlation.padded_fft import cupy_fft, torch_fft
from benchmarks.correlation.registration_fft import torch_registration
from benchmarks.harness.clock import Clock
from benchmarks.harness.contender import Contender
from benchmarks.harness.suite import Suite
from xcorr_app.correlation.choice import decide_peaks, decide_planes
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device

_CUPY = {
    "plane": (Contender("FFT, CuPy", cupy_fft),),
    "peak": (Contender("FFT + argmax, CuPy", cupy_fft),),
    "zncc-peak": (),
}
_TORCH = {
    "plane": (Contender("FFT, PyTorch", torch_fft),),
    "peak": (Contender("FFT + argmax, PyTorch", torch_fft),),
    "zncc-peak": (Contender("FFT + ZNCC, PyTorch", torch_registration),),
}


def _contenders(case: Case) -> Iterator[Contender]:
    yield from own_contenders(case)
    yield from _CUPY[case.task]


def _of_torch(case: Case) -> Iterator[Contender]:
    return iter(_TORCH[case.task])


def _auto(case: Case) -> str:
    """Return what engine ``auto`` takes for a case, under the contenders' name for it."""
    limits, dtypes = device_limits(current_device()), (case.left_type, case.right_type)
    if case.task == "plane":
        decided = decide_planes(case.problem, dtypes=dtypes, limits=limits)
        return decided.kernel if decided.engine == "direct" else decided.engine
    return decide_peaks(case.problem, dtypes=dtypes, normalize=case.task == "zncc-peak", limits=limits).engine


CORRELATION = Suite(
    "correlation",
    """Time every correlation kernel, the FFT engine, and FFTs through CuPy and PyTorch.

    Every answer is checked against float64 before it is timed; each case says who wins and what engine auto takes.
    Peaks are also searched on tensor cores, where the device has them.
    """,
    CASES,
    lambda case, xp, _copies: random_data(case, xp),
    Expected,
    _contenders,
    _of_torch,
    clock=Clock(),
    auto=_auto,
)
