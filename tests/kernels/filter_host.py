"""The caller of the filter kernels with NumPy in CuPy's place: launches run the kernels' own source on the host."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np

from tests.kernels import binding
from tests.kernels.binding import bind_without_device
from tests.kernels.host_device import run_kernel
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.stencil import reuse_run as filter_run


def numpy_as_device(monkeypatch, folder):
    """Stand in for a device until the test ends; returns the list that launches are added to."""
    ran = []

    def kernel_function(kernel, defines, shared_bytes):
        def start(grid, block, arguments, shared):
            assert shared == shared_bytes
            images, results, clipped, taps, *numbers = arguments
            assert all(isinstance(number, np.int32) for number in numbers)
            if not isinstance(clipped, np.ndarray):  # the null pointer, as a number
                clipped = SimpleNamespace(ctypes=SimpleNamespace(data=int(clipped)))
            entry = kernel.rsplit("/", 1)[-1]
            launch = SimpleNamespace(
                kernel=kernel, entry=entry, defines=defines, blocks=grid[0], threads=block[0], shared_bytes=shared
            )
            run_kernel(folder, launch, (images, results, clipped, taps), numbers)
            ran.append(launch)

        return start

    forget()
    monkeypatch.setitem(sys.modules, "cupy", np)
    bind_without_device(monkeypatch, kernel_function)
    monkeypatch.setattr(filter_run, "_address", lambda images: images.ctypes.data // 16 * 16)
    monkeypatch.setattr(filter_run, "current_device", lambda: 0)
    monkeypatch.setattr(filter_run, "device_limits", lambda _: DeviceLimits())
    return ran


def forget():
    """Forget what was prepared for the stand-in."""
    binding.forget()
    filter_run._bound_parts.cache_clear()
    filter_run._prepared.cache_clear()
