"""Threads of a run that read stacks for a device, and what brings frames there."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from xcorr_app.gpu.runtime.upload import Uploader
from xcorr_app.registration.stack.passes import worker_count

_MAX_READERS = 16
_OF_PLAIN = 3
"""Threads that read one file as it is stored: one reads, one computes, one uploads."""


def reader_count() -> int:
    """Threads that read one stack together where it is computed: half of the cores."""
    return max(1, min(_MAX_READERS, worker_count()) // 2)


class Prefetch:
    """Made when the first stack is read for a device; kept until the end of the run, with its pinned memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._uploader: Uploader | None = None
        self._readers: ThreadPoolExecutor | None = None

    def made(self) -> tuple[Uploader, ThreadPoolExecutor]:
        """Return what brings frames to the current device, and the threads that read stacks, in order."""
        with self._lock:
            if self._uploader is None or self._readers is None:
                self._uploader = Uploader()
                how: Any = {"thread_name_prefix": "xcorr-read", "initializer": self._uploader.use}
                self._readers = ThreadPoolExecutor(max(1, min(_MAX_READERS, worker_count())), **how)
            return self._uploader, self._readers

    @property
    def is_used(self) -> bool:
        """Whether frames are brought to a device."""
        return self._uploader is not None

    def close(self) -> None:
        """End the threads; what they have not begun is not done."""
        with self._lock:
            if self._readers is not None:
                self._readers.shutdown(cancel_futures=True)
            self._uploader, self._readers = None, None


def side_by_side(*, plain: bool) -> int:
    """Threads that bring one stack to a device together."""
    return _OF_PLAIN if plain else _MAX_READERS
