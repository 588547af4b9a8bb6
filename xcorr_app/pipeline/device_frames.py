"""Frames of a stack that is larger than a device, read and uploaded ahead of who asks for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np

from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.io.meter import Meter, timed
from xcorr_app.registration.stack.frames import Chunk, Frames

_FRAMES_A_PART = 16
"""That one thread reads of a range; several read it together."""


class HostFrames(Frames, Protocol):
    """Frames that can be read into a buffer."""

    @property
    def read_dtype(self) -> np.dtype[Any]:
        """Type of a pixel of what is read."""

    @property
    def is_read_in_turns(self) -> bool:
        """See :func:`xcorr_app.io.reading.is_read_in_turns`."""

    def fill(self, start: int, stop: int, out: np.ndarray) -> dict[int, str]:
        """Read frames ``start`` to ``stop - 1`` into `out`; returns why some cannot be read, by frame number."""
        ...


class Buffer(Protocol):
    """See :class:`xcorr_app.gpu.runtime.upload.Upload`."""

    host: np.ndarray

    def send(self, count: int) -> None:
        """Bring entries to the device."""

    def take(self, count: int) -> Array:
        """A copy of them there."""


class Buffers(Protocol):
    """See :class:`xcorr_app.gpu.runtime.upload.Uploader`."""

    def use(self) -> None:
        """Make the device current in a thread."""

    def buffer(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Buffer:
        """Make a buffer."""


class DeviceFrames:
    """Hands out device arrays of frames; while a range is worked on, the next one of the same length is brought.

    Parameters
    ----------
    host
        Where they come from.
    uploader
        Brings them.
    threads
        That read one range together.
    waited
        Told of the time for which a range was not there yet.
    """

    def __init__(
        self,
        host: HostFrames,
        uploader: Buffers,
        *,
        threads: int,
        meter: Meter | None = None,
        waited: Callable[[str, float], None] | None = None,
    ) -> None:
        self.count, self.shape, self.dtype = host.count, host.shape, np.dtype(host.dtype)
        self._read_dtype = host.read_dtype
        self._host, self._uploader, self._meter, self._waited = host, uploader, meter, waited
        self._readers = ThreadPoolExecutor(threads, thread_name_prefix="xcorr-read")
        self._ahead = ThreadPoolExecutor(1, thread_name_prefix="xcorr-upload", initializer=uploader.use)
        self._coming: tuple[tuple[int, int], Future[tuple[Buffer, dict[int, str]]]] | None = None
        self._free: list[Buffer] = []

    def read(self, start: int, stop: int) -> Chunk:
        """Frames ``start`` to ``stop - 1``, on the device, not to be changed."""
        begin = time.perf_counter()
        if self._coming is not None and self._coming[0] == (start, stop):
            (_, future), self._coming = self._coming, None
        else:
            self._forget()
            future = self._ahead.submit(self._read_ahead, start, stop)
        buffer, unreadable = future.result()
        if self._waited is not None:
            self._waited("read", time.perf_counter() - begin)
        frames = buffer.take(stop - start)
        self._free.append(buffer)
        following = (stop, min(2 * stop - start, self.count))
        if stop - start > 1 and following[1] > following[0]:
            self._coming = following, self._ahead.submit(self._read_ahead, *following)
        return Chunk(start, frames, unreadable)

    def on_host(self) -> Frames:
        """Return the same frames, handed out as NumPy arrays."""
        return self._host.on_host()

    def close(self) -> None:
        """End the threads and give back the memory."""
        self._forget()
        self._ahead.shutdown()
        self._readers.shutdown()
        self._free.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _forget(self) -> None:
        """Give up what was being brought, since something else is asked for."""
        if self._coming is not None:
            _, future = self._coming
            self._coming = None
            if not future.cancel() and future.exception() is None:
                self._free.append(future.result()[0])

    def _read_ahead(self, start: int, stop: int) -> tuple[Buffer, dict[int, str]]:
        """Read a range by several threads and upload it."""
        count = stop - start
        buffer = next((free for free in self._free if free.host.shape[0] >= count), None)
        if buffer is None:
            self._free.clear()
            buffer = self._uploader.buffer((count, *self.shape), self._read_dtype)
        else:
            self._free.remove(buffer)
        unreadable: dict[int, str] = {}
        parts = range(start, stop, _FRAMES_A_PART)

        def fill(first: int) -> dict[int, str]:
            last = min(first + _FRAMES_A_PART, stop)
            return self._host.fill(first, last, buffer.host[first - start : last - start])

        for found in self._readers.map(fill, parts):
            unreadable |= found
        with timed(self._meter, "upload", count * buffer.host[0].nbytes):
            buffer.send(count)
        return buffer, unreadable
