"""What calls kernels, run on the host: NumPy takes CuPy's place and the shim that of the device."""

import sys
from typing import ClassVar

import numpy as np

from tests.kernels.host_device import guarded, run_kernel

_STAND_INS = {
    "Download": lambda array: lambda: array,
    "download": np.array,
    "null_pointer": lambda: np.zeros(0, np.float32),
}


class HostArrays:
    """The few functions of CuPy that callers of kernels use; new arrays are poisoned, and guarded on both sides."""

    ascontiguousarray = staticmethod(np.ascontiguousarray)
    asarray = staticmethod(np.asarray)
    concatenate = staticmethod(np.concatenate)
    array, ones, zeros = staticmethod(np.array), staticmethod(np.ones), staticmethod(np.zeros)

    made: ClassVar[list[np.ndarray]] = []

    @classmethod
    def empty(cls, shape, dtype=np.float64):
        """Array of NaN, or 77 for integers."""
        cls.made.append(guarded(np.full(shape, np.nan if np.dtype(dtype).kind == "f" else 77, dtype)))
        return cls.made[-1]


def run_on_host(monkeypatch, folder, *modules):
    """Let the modules' launches run on the host."""

    def start(launch, arrays, numbers):
        assert all(array.flags.c_contiguous for array in arrays)
        run_kernel(folder, launch, arrays, numbers)

    monkeypatch.setitem(sys.modules, "cupy", HostArrays)
    for module in modules:
        monkeypatch.setattr(module, "start", start)
        for name, stand_in in _STAND_INS.items():
            if hasattr(module, name):
                monkeypatch.setattr(module, name, stand_in)
