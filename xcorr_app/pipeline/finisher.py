"""What remains to be done of a stack once it is computed: brought to the disk and recorded while the next is computed.

A few threads take stacks in turn. So much unfinished work as they have may wait, no more; an interruption abandons what
waits, so that nothing half-written is left.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Self, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    """The outcome of a job that a thread does."""

    def __init__(self, job: Callable[[], T], abandon: Callable[[], None]) -> None:
        self._job, self.abandon = job, abandon
        self._done = threading.Event()
        self._outcome: tuple[T] | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Do the job."""
        try:
            self._outcome = (self._job(),)
        except BaseException as error:  # noqa: BLE001 - it is raised where the outcome is asked for
            self._error = error
        finally:
            self._done.set()

    def result(self) -> T:
        """What became of it, once it is done."""
        # With a limit, a wait can be interrupted.
        while not self._done.wait(1.0):
            pass
        if self._error is not None:
            raise self._error
        assert self._outcome is not None  # noqa: S101 - for the type checker
        return self._outcome[0]


class Finisher(Generic[T]):
    """Threads that finish stacks; as a context, it ends when all are finished, or at once where an error comes out."""

    def __init__(self, threads: int) -> None:
        self._queue: queue.Queue[Later[T] | None] = queue.Queue()
        self._free = threading.Semaphore(2 * threads)
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, name=f"xcorr-finish-{number}", daemon=True) for number in range(threads)
        ]

    def submit(self, job: Callable[[], T], abandon: Callable[[], None]) -> Later[T]:
        """Let a thread do a job; waits while too many do. `abandon` undoes what has begun, if it is never done."""
        later = Later(job, abandon)
        while not self._free.acquire(timeout=1.0):
            pass
        self._queue.put(later)
        return later

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._stopped.set()
            while True:
                try:
                    later = self._queue.get_nowait()
                except queue.Empty:
                    break
                if later is not None:
                    later.abandon()
        for _ in self._threads:
            self._queue.put(None)
        # Who is bringing a file to the disk cannot be interrupted: one second, then the process ends without it.
        for thread in self._threads:
            thread.join(None if error is None else 1.0 / len(self._threads))

    def _work(self) -> None:
        while (later := self._queue.get()) is not None:
            if self._stopped.is_set():
                later.abandon()
            else:
                later.run()
            self._free.release()
