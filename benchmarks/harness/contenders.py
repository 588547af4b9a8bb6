"""Who takes part in a case: the product's own contenders and the peers that are installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

from benchmarks.correlation.cases import Case
from benchmarks.correlation.own_kernels import own_contenders
from benchmarks.correlation.padded_fft import cupy_fft, torch_fft
from benchmarks.correlation.pruned_fft import pruned_fft
from benchmarks.correlation.registration_fft import torch_registration
from benchmarks.correlation.single_calls import cupyx_correlate, cupyx_correlate2d, torch_fft_call
from benchmarks.harness.contender import Contender

__all__ = ["contenders_of", "has_torch"]

_CUPY = {
    "plane": (Contender("FFT, CuPy", cupy_fft),),
    "peak": (Contender("FFT + argmax, CuPy", cupy_fft),),
    "zncc-peak": (),
    "call": (
        Contender("cupyx correlate, fft", cupyx_correlate),
        Contender("cupyx correlate2d", cupyx_correlate2d),
    ),
}
_TORCH = {
    "plane": (Contender("FFT, PyTorch", torch_fft),),
    "peak": (
        Contender("FFT + argmax, PyTorch", torch_fft),
        Contender("pruned FFT + argmax, TF32", pruned_fft),
    ),
    "zncc-peak": (Contender("FFT + ZNCC, PyTorch", torch_registration),),
    "call": (Contender("FFT, PyTorch", torch_fft_call),),
}


def contenders_of(case: Case, *, quick: bool = False) -> Iterator[Contender]:
    """Yield who takes part in a case.

    Parameters
    ----------
    case : Case
        Any.
    quick : bool, optional
        Of the kernels, only the variants that may be the fastest.

    Yields
    ------
    Contender
        The product's own first.
    """
    yield from own_contenders(case, quick=quick)
    yield from _CUPY[case.task]
    if has_torch():
        yield from _TORCH[case.task]


def has_torch() -> bool:
    """Whether PyTorch is installed."""
    return importlib.util.find_spec("torch") is not None
