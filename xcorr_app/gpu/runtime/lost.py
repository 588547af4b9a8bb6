"""A device that answers nothing any more: CUDA returns some errors from every call until the process ends."""

from __future__ import annotations

import atexit
import importlib
import sys
from typing import Any

import numpy as np

from xcorr_app.gpu.runtime.memory import is_out_of_memory


def is_lost(xp: Any) -> bool:
    """Whether the current device of an array module cannot be used any more in this process.

    Where it cannot, nothing more is printed of that: CuPy frees what it holds, at the latest when the process ends,
    each of which fails once more.
    """
    if xp is np:
        return False
    runtime = importlib.import_module("cupy").cuda.runtime
    for _ in range(2):  # an error that lasts is returned again
        try:
            runtime.deviceSynchronize()
        except Exception as error:  # noqa: BLE001 - CUDA's errors of every kind
            if is_out_of_memory(error):
                return False
        else:
            return False
    _silence()
    return True


def _silence() -> None:
    """Do not print what goes wrong where CuPy's objects are freed; what comes out of the program itself still is."""
    before = sys.unraisablehook

    def unraisable(failure: Any) -> None:
        if not failure.exc_type.__module__.startswith("cupy"):
            before(failure)

    def at_exit() -> None:
        sys.excepthook = lambda *_: None  # Cython prints the same error by this one first

    sys.unraisablehook = unraisable
    atexit.register(at_exit)
