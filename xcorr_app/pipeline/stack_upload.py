"""Frames of a stack on a device: read by several threads, a part each, and uploaded as they come."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.gpu.runtime.memory import attempt
from xcorr_app.gpu.runtime.upload import Uploader
from xcorr_app.io.source import Closable, Meter, timed
from xcorr_app.pipeline.planes import HostPlanes
from xcorr_app.registration.stack.frames import ArrayFrames, Chunk, Frames

_BYTES_A_PART = 1 << 23
"""That a thread reads at once: enough to be worth its calls."""
_SHARED_BYTES_A_PART = 1 << 21
"""The same where many threads share a stack, of which none should be left alone with the last part."""
_WAITED_FOR = 4096
"""Most frames of a stack that is measured once all of them are on the device; longer ones are as they arrive."""


class StackUpload(Closable):
    """Hands out frames of a stack as parts of one device array, once they are there.

    Raises what CuPy does where the device's memory does not suffice for them.

    Parameters
    ----------
    host
        Where they come from.
    carrier
        Brings them.
    readers
        Threads that read, one stack after the other, in which the carrier's device is current.
    within
        First and one past the last of the frames that are brought: by default all.
    side_by_side
        Threads that read this stack together, at most.
    waited
        Told of the time for which frames were not there yet.
    """

    def __init__(
        self,
        host: HostPlanes,
        carrier: Uploader,
        readers: ThreadPoolExecutor,
        *,
        within: tuple[int, int] | None = None,
        side_by_side: int = 16,
        meter: Meter | None = None,
        waited: Callable[[str, float], None] | None = None,
    ) -> None:
        self.count, self.shape, self.dtype = host.count, host.shape, np.dtype(host.dtype)
        self._host, self._carrier, self._readers, self._meter, self._waited = host, carrier, readers, meter, waited
        kind, (self._first, self._last) = host.read_dtype, within or (0, self.count)
        self._there: Array = carrier.room((self._last - self._first, *self.shape), kind)
        part = _BYTES_A_PART if host.is_plain else min(_BYTES_A_PART, _SHARED_BYTES_A_PART)
        self._step = max(1, part // (self.shape[0] * self.shape[1] * kind.itemsize))
        starts = range(self._first, self._last, self._step)
        self._parts: list[Future[dict[int, str]] | None] = [Future() for _ in starts]
        self._closed, self._lock = False, threading.Lock()
        self._left = iter(zip(starts, tuple(self._parts), strict=True))
        self._walks = [readers.submit(self._read_in_order) for _ in range(min(side_by_side, len(starts)))]

    def read(self, start: int, stop: int) -> Chunk:
        """Frames ``start`` to ``stop - 1``, on the device, not to be changed."""
        return Chunk(start, self._there[start - self._first : stop - self._first], self._arrived(start, stop))

    def on_host(self) -> Frames:
        """Return the same frames, handed out as NumPy arrays."""
        return self._host.on_host()

    def settled(self) -> Frames:
        """The frames as a plain array on the device, which is measured in fewer steps; as they are where many come."""
        if self.count > _WAITED_FOR or self._there.dtype != self.dtype or self._arrived(0, self.count):
            return self
        return ArrayFrames(self._there)

    def close(self) -> None:
        """Give back the memory, once nothing is brought there any more."""
        self._closed = True
        for walk in self._walks:
            if not walk.cancel():
                walk.exception()
        for part in self._parts:
            if part is not None and not part.cancel():
                part.exception()
        self._parts.clear()
        self._there = None

    def _arrived(self, start: int, stop: int) -> dict[int, str]:
        """Wait for frames; returns why some of them cannot be read."""
        begin = time.perf_counter()
        unreadable: dict[int, str] = {}
        for number in range((start - self._first) // self._step, -(-(stop - self._first) // self._step)):
            part = self._parts[number]
            if part is None:
                again = self._first + number * self._step
                part = self._parts[number] = self._readers.submit(self._read_part, again)
            try:
                unreadable |= part.result()
            except Exception:
                # What has failed, memory having run out, say, may work for who asks next.
                self._parts[number] = None
                raise
        if self._waited is not None:
            self._waited("read", time.perf_counter() - begin)
        return {number: text for number, text in unreadable.items() if start <= number < stop}

    def _read_in_order(self) -> None:
        """Bring one part after the other of those that nobody brings."""
        while not self._closed:
            with self._lock:
                start, part = next(self._left, (0, None))
            if part is None or not part.set_running_or_notify_cancel():
                return
            try:
                part.set_result(self._read_part(start))
            except BaseException as error:  # noqa: BLE001 - it is raised where the part is asked for
                part.set_exception(error)

    def _read_part(self, start: int) -> dict[int, str]:
        """Read a part and upload it."""
        if self._closed:
            return {}
        stop = min(start + self._step, self._last)
        out = self._carrier.own_buffer((stop - start, *self.shape), self._there.dtype)
        unreadable = self._host.fill(start, stop, out)
        with timed(self._meter, "upload", out.nbytes):
            self._carrier.send(out, self._there[start - self._first : stop - self._first])
        return unreadable


class DeviceFrames(Closable):
    """Hands out device arrays of frames; while a range is worked on, the next one of the same length is brought.

    Parameters
    ----------
    host
        Where they come from.
    upload
        ``upload(host, within=(start, stop))`` begins to bring a range: `StackUpload`.
    """

    def __init__(self, host: HostPlanes, upload: Callable[..., StackUpload]) -> None:
        self.count, self.shape, self.dtype = host.count, host.shape, np.dtype(host.dtype)
        self._host, self._upload = host, upload
        self._coming: tuple[tuple[int, int], StackUpload] | None = None

    def on_host(self) -> Frames:
        """Return the same frames, handed out as NumPy arrays."""
        return self._host.on_host()

    def read(self, start: int, stop: int) -> Chunk:
        """Frames ``start`` to ``stop - 1``, on the device, not to be changed."""
        if self._coming is None or self._coming[0] != (start, stop):
            self.close()
            self._coming = (start, stop), self._upload(self._host, within=(start, stop))
        with self._coming[1] as upload:
            self._coming = None
            chunk = upload.read(start, stop)
        following = stop, min(2 * stop - start, self.count)
        if stop - start > 1 and following[1] > stop:
            # Where memory does not suffice for both, the next range comes when it is asked for.
            for upload in attempt(lambda: self._upload(self._host, within=following)):
                self._coming = following, upload
        return chunk

    def close(self) -> None:
        """Give up what is being brought."""
        if self._coming is not None:
            self._coming[1].close()
            self._coming = None
