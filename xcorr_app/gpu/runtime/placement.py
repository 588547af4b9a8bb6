"""On which device arrays live, and that it is the current one while they are worked on."""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from xcorr_app.errors import DeviceError
from xcorr_app.gpu.runtime.arrays import Array, is_device_array

_WHERE_WE_ARE: AbstractContextManager[Any] = contextlib.nullcontext()


def current_device() -> int:
    """Return the number of the current CUDA device."""
    return _number_of_current()()


@functools.cache
def _number_of_current() -> Callable[[], int]:
    found: Callable[[], int] = importlib.import_module("cupy").cuda.runtime.getDevice
    return found


def on_device_of(array: Array, other: Array = None) -> AbstractContextManager[Any]:
    """Return a context in which the device that holds the arrays is the current one."""
    if not is_device_array(array):
        return _WHERE_WE_ARE
    device = array.device
    if other is not None and not isinstance(other, np.ndarray) and other.device.id != device.id:
        raise DeviceError(
            f"left is on device cuda:{device.id}, right on cuda:{other.device.id}: copy one of them to the other's "
            f"device, for example by cupy.asarray(right) under `with cupy.cuda.Device({device.id}):`"
        )
    chosen: AbstractContextManager[Any] = _WHERE_WE_ARE if device.id == current_device() else device
    return chosen
