"""Kernels bound without a device: NumPy in CuPy's place, and launches that run the kernels' own source on the host."""

import sys
from types import SimpleNamespace

import numpy as np

from tests.kernels.host_device import run_kernel
from xcorr_app.gpu.resample import run, warping
from xcorr_app.gpu.runtime import binder
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.stencil import reuse_run, separable_run
from xcorr_app.registration.moving import device_moving


def forget():
    """Forget what was bound or prepared, for this stand-in or another."""
    caches = (binder._bound, binder.null_pointer, run._prepared, warping._prepared)
    for each in (*caches, reuse_run._bound_parts, separable_run._bound_parts):
        each.cache_clear()


def bind_to_host(monkeypatch, folder, names):
    """Let launches run on NumPy arrays, and add the kernels' names to a list; call `forget` at the end."""

    def kernel_function(kernel, defines, shared_bytes):
        def start(grid, block, arguments, shared):
            assert shared == shared_bytes
            numbers = [argument for argument in arguments if isinstance(argument, np.int32)]
            others = [argument for argument in arguments if not isinstance(argument, np.int32)]
            launch = Launch(kernel, defines, *grid, *block, shared)
            arrays = [other if isinstance(other, np.ndarray) else _null(other) for other in others]
            assert all(array.flags.c_contiguous for array in others if isinstance(array, np.ndarray))
            run_kernel(folder, launch, arrays, numbers)
            names.append(launch.entry)

        return start

    forget()
    monkeypatch.setitem(sys.modules, "cupy", np)
    monkeypatch.setattr(binder, "kernel_function", kernel_function)
    monkeypatch.setattr(binder, "current_device", lambda: 0)
    monkeypatch.setattr(binder, "_number_type", lambda: lambda number: number)
    monkeypatch.setattr(binder, "_struct_type", lambda: lambda element: element)


def _null(number):
    assert int(number) == 0
    return SimpleNamespace(ctypes=SimpleNamespace(data=0))


def numpy_as_device(monkeypatch, folder):
    """Let NumPy stand for a device until the test ends; returns the list that names of kernels are added to."""
    names = []
    bind_to_host(monkeypatch, folder, names)
    monkeypatch.setattr(run, "address_of", lambda array: array.ctypes.data)
    monkeypatch.setattr(reuse_run, "_address", lambda images: images.ctypes.data // 16 * 16)
    for caller in (run, device_moving, warping, reuse_run, separable_run):
        monkeypatch.setattr(caller, "current_device", lambda: 0)
        monkeypatch.setattr(caller, "device_limits", lambda _: DeviceLimits())
    return names
