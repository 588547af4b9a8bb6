"""Engines: ways to compute the plain sums ``C[dy, dx]``, and the choice between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xcorr_app.correlation.engines.base import Correlator, Engine, Operand
from xcorr_app.correlation.engines.definition import DefinitionEngine
from xcorr_app.correlation.engines.fft import FFTEngine
from xcorr_app.correlation.engines.task import Task
from xcorr_app.correlation.engines.tensor import TensorEngine
from xcorr_app.correlation.engines.warp_shuffle import WarpShuffleEngine
from xcorr_app.errors import ArgumentError, DeviceError
from xcorr_app.gpu.direct.costs import cheapest
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device

__all__ = ["ENGINES", "Correlator", "Engine", "Operand", "Task", "check_kernel_options", "choose_engine"]

_ALL: tuple[Engine, ...] = (FFTEngine(), WarpShuffleEngine(), TensorEngine(), DefinitionEngine())
ENGINES: dict[str, Engine] = {engine.name: engine for engine in _ALL}
_WITH_OPTIONS: dict[str, Callable[[KernelOptions | None], Engine]] = {
    "warp-shuffle": WarpShuffleEngine,
    "tensor": TensorEngine,
}


def choose_engine(name: str, xp: Any, task: Task | None = None, kernel_options: KernelOptions | None = None) -> Engine:
    """Engine of this name, or for ``"auto"`` the fastest one by the table of measurements.

    ``"auto"`` is the FFT for NumPy arrays, for float64 and where no task is stated; kernel options that ask for
    something make it the engine that has them.

    Parameters
    ----------
    name : str
        ``"auto"`` or a key of `ENGINES`.
    xp : module
        numpy or cupy: the kind of array.
    task : Task, optional
        What the engine will be asked to do.
    kernel_options : KernelOptions, optional
        For engine ``"warp-shuffle"`` or ``"tensor"``.

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
        name = owner or _fastest(xp, task)
    if not isinstance(name, str) or name not in ENGINES:
        raise ArgumentError(f"unknown engine {name!r}: use auto or one of {', '.join(ENGINES)}")
    engine = ENGINES[name] if owner is None else _WITH_OPTIONS[owner](kernel_options)
    reason = engine.unavailable(xp)
    if reason is not None:
        raise DeviceError(f"engine {name!r} cannot run on {xp.__name__} arrays: {reason}")
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


def _fastest(xp: Any, task: Task | None) -> str:
    if xp is np or task is None or task.dtype != np.float32:
        return "fft"
    return "fft" if cheapest(task.problem, device_limits(current_device())) == "fft" else "warp-shuffle"
