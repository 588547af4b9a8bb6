"""The callers of the family's kernels with NumPy in CuPy's place: launches run the kernels' own source on the host."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np

from tests.kernels import binding
from tests.kernels.binding import bind_without_device
from tests.kernels.host_device import run_kernel
from xcorr_app.gpu.resample import fourier, run, warping
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.registration.moving import device_moving


def numpy_as_device(monkeypatch, folder):
    """Stand in for a device until the test ends; returns the list that launches are added to."""
    ran = []

    def kernel_function(kernel, defines, shared_bytes):
        def start(grid, block, arguments, shared):
            assert shared == shared_bytes
            numbers = [argument for argument in arguments if isinstance(argument, np.int32)]
            others = [argument for argument in arguments if not isinstance(argument, np.int32)]
            arrays = [argument if isinstance(argument, np.ndarray) else _null(argument) for argument in others]
            entry = kernel.rsplit("/", 1)[-1]
            launch = SimpleNamespace(
                kernel=kernel, entry=entry, defines=defines, blocks=grid[0], threads=block[0], shared_bytes=shared
            )
            run_kernel(folder, launch, arrays, numbers)
            ran.append(launch)

        return start

    forget()
    monkeypatch.setitem(sys.modules, "cupy", np)
    bind_without_device(monkeypatch, kernel_function)
    monkeypatch.setattr(run, "address_of", lambda array: array.ctypes.data)
    for caller in (run, fourier, device_moving, warping):
        monkeypatch.setattr(caller, "current_device", lambda: 0)
    for caller in (run, device_moving, warping):
        monkeypatch.setattr(caller, "device_limits", lambda _: DeviceLimits())
    return ran


def forget():
    """Forget what was prepared for the stand-in."""
    binding.forget()
    run._prepared.cache_clear()
    fourier._prepared.cache_clear()
    warping._prepared.cache_clear()


def _null(number):
    assert int(number) == 0
    return SimpleNamespace(ctypes=SimpleNamespace(data=0))
