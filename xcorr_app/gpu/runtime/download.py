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
    return array if isinstance(array, np.ndarray) else Download(array)()


class Download:
    """A device array on its way to the host: calling it waits for this alone, not for what was started later.

    Where nobody asks for the values, the copy is waited for all the same before its memory is given back.
    """

    def __init__(self, array: Array) -> None:
        cuda = importlib.import_module("cupy").cuda
        self._done: Any = None  # of a copy that was not begun
        stream = cuda.get_current_stream()
        self._host: NDArray[Any] = _memory_for(array, cuda)
        array.get(stream=stream, out=self._host, blocking=False)
        self._done = stream.record(cuda.Event(disable_timing=True))

    def __call__(self) -> NDArray[Any]:
        """Return the values."""
        self._done.synchronize()
        return self._host

    def __del__(self) -> None:
        if self._done is not None:
            self._done.synchronize()


def _memory_for(array: Array, cuda: Any) -> NDArray[Any]:
    """Pinned memory for a device array, or other memory where that is refused."""
    dtype = np.dtype(array.dtype)
    try:
        pinned = cuda.alloc_pinned_memory(max(1, array.size * dtype.itemsize))
    except Exception:  # noqa: BLE001 - CUDA's errors of every kind: there is another way
        return np.empty(array.shape, dtype)
    return np.frombuffer(pinned, dtype, array.size).reshape(array.shape)


_BYTES_AT_ONCE = 1 << 24


def download_in_parts(images: Array) -> Iterator[NDArray[Any]]:
    """Yield the same images (n, ...), some at a time: pinned memory takes long to make, and is used again."""
    if isinstance(images, np.ndarray):
        yield images
        return
    step = max(1, _BYTES_AT_ONCE * len(images) // max(1, images.nbytes))
    for start in range(0, len(images), step):
        yield download(images[start : start + step])
