"""Kernels bound without a device: NumPy in CuPy's place, and launches that run the kernels' own source on the host."""

import sys
from types import SimpleNamespace

import numpy as np

from tests.kernels.host_device import run_kernel
from xcorr_app.gpu.runtime import binder
from xcorr_app.gpu.runtime.launch import Launch


def forget():
    """Forget what was bound, for this stand-in or another."""
    binder._bound.cache_clear()
    binder.null_pointer.cache_clear()


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
