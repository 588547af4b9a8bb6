"""Frames brought to a device while it works on others: through pinned memory, on a stream of their own.

A copy from pinned memory runs beside kernels of other streams. `Uploader.room` is the one place where memory is
allocated that this stream fills: it waits for all that the computing stream was told before, since the memory may have
been another array's that this still reads.
"""

from __future__ import annotations

import importlib
import threading
from typing import Any

import numpy as np

from xcorr_app.gpu.runtime.arrays import Array

NOTE = "Pinned memory was refused: frames are brought to the device without it, which takes longer."


class Uploader:
    """Brings arrays to the current device."""

    def __init__(self) -> None:
        self.cupy: Any = importlib.import_module("cupy")
        self.device = self.cupy.cuda.Device()
        self.stream = self.cupy.cuda.Stream(non_blocking=True)
        self.notes: list[str] = []
        self._of_thread, self._lock = threading.local(), threading.Lock()

    def use(self) -> None:
        """Make the device current in a thread."""
        self.device.use()

    def room(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return an array on the device that `send` may fill; raises what CuPy does where memory does not suffice.

        To be called by the thread that computes, whose stream reads the array once it is filled.
        """
        there = self.cupy.empty(shape, dtype)
        self.stream.wait_event(self.cupy.cuda.get_current_stream().record())
        return there

    def own_buffer(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        """Return a buffer of this thread, pinned where the system allows it; the next call returns the same memory."""
        size = int(np.prod(shape)) * dtype.itemsize
        kept: np.ndarray | None = getattr(self._of_thread, "buffer", None)
        if kept is None or kept.size < size:
            self._of_thread.buffer = None
            self._of_thread.buffer = kept = self._host_buffer(size)
        return kept[:size].view(dtype).reshape(shape)

    def send(self, host: np.ndarray, there: Array) -> None:
        """Bring a buffer to the device; returns when it is there."""
        there.set(host, stream=self.stream)
        self.stream.record().synchronize()

    def _host_buffer(self, size: int) -> np.ndarray:
        """Pinned memory, or plain memory where that is refused."""
        try:
            return np.frombuffer(self.cupy.cuda.alloc_pinned_memory(size), np.uint8, size)
        except Exception:  # noqa: BLE001 - CUDA's errors of every kind: there is another way
            with self._lock:
                if NOTE not in self.notes:
                    self.notes.append(NOTE)
            return np.empty(size, np.uint8)
