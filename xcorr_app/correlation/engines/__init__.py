"""Engines: ways to compute the plain sums ``C[dy, dx]``, and which of them runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from xcorr_app.correlation.choice import decide_planes
from xcorr_app.correlation.engines.base import Correlator, Engine
from xcorr_app.correlation.engines.definition import DEFINITION
from xcorr_app.correlation.engines.direct import direct_engine
from xcorr_app.correlation.engines.fft import FFT
from xcorr_app.correlation.engines.tensor import tensor_engine
from xcorr_app.errors import ArgumentError, DeviceError
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import DeviceLimits, device_limits
from xcorr_app.gpu.runtime.placement import current_device

__all__ = [
    "ENGINES",
    "Correlator",
    "Engine",
    "check_kernel_options",
    "choose_engine",
    "limits_of",
]

ENGINES = {engine.name: engine for engine in (FFT, direct_engine(), tensor_engine(), DEFINITION)}
_WITH_OPTIONS = {"direct": direct_engine, "tensor": tensor_engine}


def limits_of(xp: Any) -> DeviceLimits | None:
    """Limits of the current device for CuPy arrays; None for NumPy's, which are on the CPU."""
    return None if xp is np else device_limits(current_device())


def choose_engine(
    name: str,
    xp: Any,
    problem: Problem | None = None,
    kernel_options: KernelOptions | None = None,
    dtypes: tuple[str, str] = ("float32", "float32"),
) -> Engine:
    """Engine of this name, or for ``"auto"`` what `decide_planes` says; the FFT where no problem is stated.

    `dtypes` are the names of the types that the engine is handed, float64 where planes are to be.

    Raises
    ------
    ArgumentError
        If there is no engine of this name, or kernel options ask for something that it does not have.
    DeviceError
        If it cannot run on such arrays.
    """
    check_kernel_options(name, kernel_options)
    owner = None if kernel_options is None else kernel_options.engine
    if name == "auto":
        name = owner or (
            "fft" if problem is None else decide_planes(problem, dtypes=dtypes, limits=limits_of(xp)).engine
        )
    if not isinstance(name, str) or name not in ENGINES:
        raise ArgumentError(f"unknown engine {name!r}: use auto or one of {', '.join(ENGINES)}")
    engine = ENGINES[name] if owner is None else _WITH_OPTIONS[owner](kernel_options)
    reason = engine.unavailable(xp)
    if reason is not None:
        raise DeviceError(
            f"engine {name!r} cannot run on {xp.__name__} arrays: {reason} (`xcorr env` says what can run here)"
        )
    return engine


def check_kernel_options(name: str, kernel_options: KernelOptions | None) -> None:
    """Raise where kernel options are none, or ask for something that the engine of this name does not have.

    Raises
    ------
    ArgumentError
        The message says which engine has them.
    """
    if kernel_options is None:
        return
    if not isinstance(kernel_options, KernelOptions):
        raise ArgumentError(f"kernel_options is {kernel_options!r}: give xcorr_app.KernelOptions(...)")
    owner = kernel_options.engine
    if owner is not None and name not in ("auto", owner):
        what = "kernel options belong" if kernel_options.precision is None else "precision belongs"
        raise ArgumentError(f"{what} to engine {owner!r}, not to {name!r}: leave one of them out")
