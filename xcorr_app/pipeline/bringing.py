"""Threads of a run that read stacks for a device, one after the other, and what brings frames there."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from xcorr_app.gpu.runtime.upload import Uploader
from xcorr_app.registration.passes import worker_count

_MOST_READERS = 16


class Bringing:
    """Made when the first stack is read for a device; kept until the end of the run, with its pinned memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: tuple[Uploader, ThreadPoolExecutor] | None = None

    def made(self) -> tuple[Uploader, ThreadPoolExecutor]:
        """Return what brings frames to the current device, and the threads."""
        with self._lock:
            if self._made is None:
                uploader = Uploader()
                threads = min(_MOST_READERS, worker_count())
                readers = ThreadPoolExecutor(threads, thread_name_prefix="xcorr-read", initializer=uploader.use)
                self._made = uploader, readers
            return self._made

    def close(self) -> None:
        """End the threads; what they have not begun is not done."""
        with self._lock:
            if self._made is not None:
                self._made[1].shutdown(cancel_futures=True)
                self._made = None
