"""The choice of where arrays live: on the CPU or on a CUDA device."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from types import ModuleType
from warnings import catch_warnings

import numpy as np

from xcorr_app.errors import ArgumentError, DeviceError
from xcorr_app.gpu.runtime.compile_ahead import compile_ahead
from xcorr_app.gpu.runtime.device import cuda_status, require_cuda


@dataclass(frozen=True)
class Device:
    """Where a run computes."""

    xp: ModuleType
    """numpy or cupy."""
    description: str
    note: str | None = None
    """Why ``auto`` did not take a GPU."""
    is_asked_for: bool = True
    """The user named it; what ``auto`` took may give way to the CPU."""


OF_WORKERS = Device(np, "workers of a cluster")
"""Where a run computes whose workers have devices of their own."""


def select_device(text: str) -> Device:
    """Understand ``auto``, ``cpu``, ``cuda`` or ``cuda:N`` and make that device the current one.

    Raises
    ------
    ArgumentError
        If the text is none of these.
    DeviceError
        If a CUDA device was asked for and cannot be used; the message says why.
    """
    if text == "cpu":
        return Device(np, "CPU")
    if text == "auto":
        status = cuda_status()
        if not status.available:
            return Device(np, "CPU", f"no GPU is used: {status.reason}")
        try:
            return replace(_cuda(0), is_asked_for=False)
        except DeviceError as error:
            return Device(np, "CPU", f"no GPU is used: {error}")
    kind, _, number = text.partition(":")
    if kind != "cuda" or not (number.isdecimal() or (number == "" and text == "cuda")):
        raise ArgumentError(f"device {text!r} is not known: use auto, cpu, cuda or cuda:N")
    require_cuda()
    return _cuda(int(number or 0))


def begin_loading(text: str) -> None:
    """Let threads load what the device of this name needs, which takes a second, most of it outside Python.

    What goes wrong there goes wrong again in `select_device`, which says so. While one waits for the device, another
    one imports what CuPy itself imports in the middle of its first calculations, SciPy's sparse matrices among it.
    """
    if text == "cpu" or "cupy" in sys.modules or not importlib.util.find_spec("cupy"):
        return

    def load() -> None:
        with suppress(Exception):
            require_cuda()
            for more in (load_more, compile_more):
                threading.Thread(target=more, name=f"xcorr-device-{more.__name__}").start()
            select_device(text)

    def load_more() -> None:
        with suppress(Exception):
            importlib.import_module("cupyx.scipy.fft")

    def compile_more() -> None:
        with suppress(Exception):
            compile_ahead(int(text.partition(":")[2] or 0))

    threading.Thread(target=load, name="xcorr-device").start()


def _cuda(number: int) -> Device:
    cupy = importlib.import_module("cupy")
    try:
        count = cupy.cuda.runtime.getDeviceCount()
        if number < count:
            cupy.cuda.Device(number).use()
            # A device can be listed and yet refuse work: taken by another process, or too old for the kernels.
            cupy.arange(2).sum().item()
            with catch_warnings(action="ignore", category=FutureWarning):  # CuPy calls the function experimental
                # Of the 16 plans of transforms that a thread keeps otherwise none would be left for the next stack.
                cupy.fft.config.get_plan_cache().set_size(64)
    except Exception as error:
        raise DeviceError(f"device cuda:{number} cannot be used ({error}); the CPU can: --device cpu") from error
    if number >= count:
        raise DeviceError(f"device cuda:{number} does not exist: there are {count}, counted from 0")
    status = require_cuda()
    return Device(cupy, f"{status.name} (cuda:{number}), driver for CUDA {status.driver}, runtime {status.runtime}")
