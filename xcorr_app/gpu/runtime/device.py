"""Is there a CUDA device, and what is it? Every way of not having one becomes a sentence."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from dataclasses import dataclass
from typing import Any

from xcorr_app.errors import DeviceError, install_line
from xcorr_app.gpu.runtime.kernel_cache import provide_cache_folder


@dataclass(frozen=True)
class DeviceStatus:
    """What is known about the current CUDA device.

    Attributes
    ----------
    available : bool
        Whether kernels can be run.
    reason : str
        Why not; empty where `available`.
    name : str
        The device's name.
    driver, runtime : str
        CUDA version that the driver supports and that CuPy runs on, such as ``"13.0"``.
    compute_capability : str
        Such as ``"9.0"``.
    multiprocessors : int
        Number of multiprocessors.
    memory : int
        Bytes of device memory.
    """

    available: bool
    reason: str = ""
    name: str = ""
    driver: str = ""
    runtime: str = ""
    compute_capability: str = ""
    multiprocessors: int = 0
    memory: int = 0


def cuda_status() -> DeviceStatus:
    """Look for a CUDA device through CuPy; never raises."""
    if "cupy" not in sys.modules and importlib.util.find_spec("cupy"):
        provide_cache_folder()
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        return DeviceStatus(available=False, reason=f"CuPy cannot be imported ({error}); {install_line('gpu')}")
    except Exception as error:  # noqa: BLE001 - a broken CuPy or CUDA installation raises what it likes
        return DeviceStatus(available=False, reason=f"CuPy fails on import: {_one_line(error)}")
    try:
        return _probe(cupy)
    except Exception as error:  # noqa: BLE001 - CUDA errors of every kind: no driver, driver too old, no device
        return DeviceStatus(available=False, reason=f"no usable CUDA device: {_one_line(error)}")


def require_cuda() -> DeviceStatus:
    """Return the status of the device, or raise where there is none."""
    status = cuda_status()
    if not status.available:
        raise DeviceError(f"{status.reason}; without one, use the CPU (--device cpu)")
    return status


def _probe(cupy: Any) -> DeviceStatus:
    runtime = cupy.cuda.runtime
    if runtime.getDeviceCount() == 0:
        return DeviceStatus(available=False, reason="no usable CUDA device: the driver lists none")
    device = cupy.cuda.Device()
    properties = runtime.getDeviceProperties(device.id)
    name = properties["name"]
    return DeviceStatus(
        available=True,
        name=name.decode() if isinstance(name, bytes) else str(name),
        driver=_version(runtime.driverGetVersion()),
        runtime=_version(runtime.runtimeGetVersion()),
        compute_capability=f"{properties['major']}.{properties['minor']}",
        multiprocessors=int(properties["multiProcessorCount"]),
        memory=int(properties["totalGlobalMem"]),
    )


def _version(number: int) -> str:
    """Read CUDA's version number: 13000 is 13.0."""
    return f"{number // 1000}.{number % 1000 // 10}"


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
