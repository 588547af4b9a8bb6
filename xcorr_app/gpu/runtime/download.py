"""Arrays brought from a device to pinned memory, into which it copies several times as fast as into other memory."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array


def download(array: Array) -> NDArray[Any]:
    """Return a NumPy array with the same values; a NumPy array is handed back as it is.

    Its memory goes back to CuPy's pool of pinned memory when nobody has the array any more. Where pinned memory is
    refused, other memory does.
    """
    if isinstance(array, np.ndarray):
        return array
    cupy = importlib.import_module("cupy")
    dtype = np.dtype(array.dtype)
    try:
        pinned = cupy.cuda.alloc_pinned_memory(max(1, array.size * dtype.itemsize))
    except Exception:  # noqa: BLE001 - CUDA's errors of every kind: there is another way
        there: NDArray[Any] = array.get()
        return there
    found: NDArray[Any] = np.frombuffer(pinned, dtype, array.size).reshape(array.shape)
    array.get(out=found)
    return found


_BYTES_AT_ONCE = 1 << 24


def download_in_parts(images: Array) -> Iterator[NDArray[Any]]:
    """Yield the same images (n, ...), some at a time: pinned memory takes long to make, and is used again."""
    if isinstance(images, np.ndarray):
        yield images
        return
    step = max(1, _BYTES_AT_ONCE * len(images) // max(1, images.nbytes))
    for start in range(0, len(images), step):
        yield download(images[start : start + step])
