"""Frames of a stack that is larger than a device, read and uploaded ahead of who asks for them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

import numpy as np

from xcorr_app.gpu.runtime.memory import attempt
from xcorr_app.io.meter import Meter
from xcorr_app.pipeline.stack_upload import Carrier, HostFrames, StackUpload
from xcorr_app.registration.stack.frames import Chunk, Frames


class DeviceFrames:
    """Hands out device arrays of frames; while a range is worked on, the next one of the same length is brought.

    Parameters
    ----------
    host
        Where they come from.
    carrier
        Brings them.
    readers
        Threads that read a range together, in which the carrier's device is current.
    waited
        Told of the time for which a range was not there yet.
    """

    def __init__(
        self,
        host: HostFrames,
        carrier: Carrier,
        readers: ThreadPoolExecutor,
        *,
        side_by_side: int = 16,
        meter: Meter | None = None,
        waited: Callable[[str, float], None] | None = None,
    ) -> None:
        self.count, self.shape, self.dtype = host.count, host.shape, np.dtype(host.dtype)
        self._host, self._carrier, self._readers = host, carrier, readers
        self._how: Any = {"side_by_side": side_by_side, "meter": meter, "waited": waited}
        self._coming: tuple[tuple[int, int], StackUpload] | None = None

    def read(self, start: int, stop: int) -> Chunk:
        """Frames ``start`` to ``stop - 1``, on the device, not to be changed."""
        if self._coming is None or self._coming[0] != (start, stop):
            self.close()
            self._coming = (start, stop), self._upload(start, stop)
        with self._coming[1] as upload:
            self._coming = None
            chunk = upload.read(start, stop)
        following = stop, min(2 * stop - start, self.count)
        if stop - start > 1 and following[1] > stop:
            # Where memory does not suffice for both, the next range comes when it is asked for.
            for upload in attempt(self._upload, *following):
                self._coming = following, upload
        return chunk

    def on_host(self) -> Frames:
        """Return the same frames, handed out as NumPy arrays."""
        return self._host.on_host()

    def close(self) -> None:
        """Give up what is being brought."""
        if self._coming is not None:
            self._coming[1].close()
            self._coming = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _upload(self, start: int, stop: int) -> StackUpload:
        return StackUpload(self._host, self._carrier, self._readers, within=(start, stop), **self._how)
