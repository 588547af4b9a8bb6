"""Threads of a run that read stacks for a device, and what brings frames there."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from xcorr_app.gpu.runtime.upload import Uploader
from xcorr_app.registration.passes import worker_count

_MOST_READERS = 8
_AT_ONCE = 2
"""Stacks that are read side by side: the checksum of a file is taken by one thread at a time."""


def reader_count() -> int:
    """Threads that read one stack together: half of the cores, since another stack is read or computed meanwhile."""
    return max(1, min(_MOST_READERS, worker_count() // 2))


class Bringing:
    """Made when the first stack is read for a device; kept until the end of the run, with its pinned memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._uploader: Uploader | None = None
        self._readers: list[ThreadPoolExecutor] = []

    def made(self) -> tuple[Uploader, ThreadPoolExecutor]:
        """Return what brings frames to the current device, and the threads that read the next stack."""
        with self._lock:
            if self._uploader is None:
                self._uploader = Uploader()
                how: Any = {"thread_name_prefix": "xcorr-read", "initializer": self._uploader.use}
                self._readers = [ThreadPoolExecutor(reader_count(), **how) for _ in range(_AT_ONCE)]
            self._readers.append(self._readers.pop(0))
            return self._uploader, self._readers[-1]

    def close(self) -> None:
        """End the threads; what they have not begun is not done."""
        with self._lock:
            for readers in self._readers:
                readers.shutdown(cancel_futures=True)
            self._uploader, self._readers = None, []
