"""Frames brought to a device while it works on others: through pinned memory, on streams of their own.

A copy from pinned memory runs beside kernels of other streams. No block of CuPy's pool may be filled by one stream
while another still reads what was in it before. So a copy goes either into a buffer that lives as long as the uploader,
and who takes the frames gets a copy of that, made by their own stream in the order of their own work; or into an array
that is not filled before all work that was under way when it was made has been done.
"""

from __future__ import annotations

import importlib
import threading
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
        self._of_thread, self._lock = threading.local(), threading.Lock()

    def use(self) -> None:
        """Make the device current in a thread."""
        self.device.use()

    def buffer(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Upload:
        """Return a buffer; raises what CuPy does where the device's memory does not suffice."""
        return Upload(self, shape, dtype)

    def room(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return an array on the device that `send` may fill; raises what CuPy does where memory does not suffice."""
        there = self.cupy.empty(shape, dtype)
        # What its memory was before may still be read by work that the current stream has not come to.
        self.stream.wait_event(self.cupy.cuda.get_current_stream().record())
        return there

    def own_buffer(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        """Return a buffer of this thread, pinned where the system allows it; the next call returns the same memory."""
        size = int(np.prod(shape)) * dtype.itemsize
        kept: np.ndarray | None = getattr(self._of_thread, "buffer", None)
        if kept is None or kept.size < size:
            self._of_thread.buffer = None
            self._of_thread.buffer = kept = self.host_buffer((size,), np.dtype(np.uint8))
        return kept[:size].view(dtype).reshape(shape)

    def send(self, host: np.ndarray, there: Array) -> None:
        """Bring a buffer to the device; returns when it is there."""
        there.set(host, stream=self.stream)
        self.stream.record().synchronize()

    def host_buffer(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        """Pinned memory, or plain memory where that is refused."""
        size = int(np.prod(shape))
        try:
            pinned = self.cupy.cuda.alloc_pinned_memory(size * dtype.itemsize)
        except Exception:  # noqa: BLE001 - CUDA's errors of every kind: there is another way
            with self._lock:
                if NOTE not in self.notes:
                    self.notes.append(NOTE)
            return np.empty(shape, dtype)
        return np.frombuffer(pinned, dtype, size).reshape(shape)
