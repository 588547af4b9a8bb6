"""Frames brought to a device while it works on others: through pinned memory, on a stream of their own.

A copy from pinned memory runs beside kernels of other streams. It goes into a buffer that lives as long as the
uploader; who takes the frames gets a copy of that, made by their own stream in the order of their own work. So no block
of CuPy's pool is ever filled by one stream while another still reads what was in it before.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from xcorr_app.gpu.runtime.arrays import Array

NOTE = "Pinned memory was refused: frames are brought to the device without it, which takes longer."


class Upload:
    """A buffer in host memory, pinned where the system allows it, and its counterpart on the device."""

    def __init__(self, uploader: Uploader, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._cupy = uploader.cupy
        self._stream = uploader.stream
        self.host = uploader.host_buffer(shape, dtype)
        """To be filled."""
        self._there = self._cupy.empty(shape, dtype)
        self._taken: Any = None

    def send(self, count: int) -> None:
        """Bring the first `count` entries to the device; returns when they are there."""
        if self._taken is not None:
            self._stream.wait_event(self._taken)
        self._there[:count].set(self.host[:count], stream=self._stream)
        self._stream.synchronize()

    def take(self, count: int) -> Array:
        """A copy of the first `count` entries on the device, for the current stream; the buffer is free again then."""
        found = self._there[:count].copy()
        self._taken = self._cupy.cuda.get_current_stream().record()
        return found


class Uploader:
    """Makes buffers for the current device."""

    def __init__(self) -> None:
        self.cupy: Any = importlib.import_module("cupy")
        self.device = self.cupy.cuda.Device()
        self.stream = self.cupy.cuda.Stream(non_blocking=True)
        self.notes: list[str] = []

    def use(self) -> None:
        """Make the device current in a thread."""
        self.device.use()

    def buffer(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Upload:
        """Return a buffer; raises what CuPy does where the device's memory does not suffice."""
        return Upload(self, shape, dtype)

    def host_buffer(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        """Pinned memory, or plain memory where that is refused."""
        size = int(np.prod(shape))
        try:
            pinned = self.cupy.cuda.alloc_pinned_memory(size * dtype.itemsize)
        except Exception:  # noqa: BLE001 - CUDA's errors of every kind: there is another way
            if NOTE not in self.notes:
                self.notes.append(NOTE)
            return np.empty(shape, dtype)
        return np.frombuffer(pinned, dtype, size).reshape(shape)
