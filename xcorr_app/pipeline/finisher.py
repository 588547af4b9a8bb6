"""What is done of a stack while the next one is computed: brought to the disk, recorded, drawn.

A few threads take stacks in turn. A bounded number of stacks may wait, no more; an interruption abandons what waits and
tells who works to stop, so that nothing half-written is left.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Self, TypeVar

T = TypeVar("T")

_SECONDS_BETWEEN_CHECKS = 0.1
_PATIENCE = 0.45
"""Seconds that threads which were told to stop are waited for."""


class Later(Generic[T]):
    """The outcome of a job that a thread does."""

    def __init__(self, job: Callable[[], T], abandon: Callable[[], None]) -> None:
        self._job: Callable[[], T] | None = job
        self._undo = abandon
        self._done = threading.Event()
        self._outcome: tuple[T] | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Do the job, and forget it: it holds what it works on."""
        job, self._job = self._job, None
        assert job is not None  # noqa: S101 - for the type checker
        try:
            self._outcome = (job(),)
        except BaseException as error:  # noqa: BLE001 - it is raised where the outcome is asked for
            self._error = error
        finally:
            self._done.set()

    def abandon(self) -> None:
        """Never do the job: what has begun is undone, and who waits for the outcome is told to stop."""
        self._job, self._error = None, Stopped()
        self._done.set()
        self._undo()

    def raise_error(self) -> None:
        """Raise what came out of the job, if it is done and anything did."""
        if self._done.is_set() and self._error is not None:
            raise self._error

    def result(self, check: Callable[[], None] | None = None) -> T:
        """What became of it, once it is done; who waits may `check` meanwhile whether to go on, and raise."""
        # With a limit, a wait can be interrupted.
        while not self._done.wait(_SECONDS_BETWEEN_CHECKS):
            if check is not None:
                check()
        if self._error is not None:
            raise self._error
        assert self._outcome is not None  # noqa: S101 - for the type checker
        return self._outcome[0]


class Stopped(BaseException):
    """The run was interrupted, and this thread with it; no `Exception`, so that nobody takes it for a failure."""


class Finisher(Generic[T]):
    """Threads that finish stacks; as a context, it ends when all are finished, or at once where an error comes out.

    Parameters
    ----------
    threads
        How many.
    at_once
        Stacks that are worked on or wait, at most.
    """

    def __init__(self, threads: int, at_once: int | None = None) -> None:
        self._queue: queue.Queue[Later[T] | None] = queue.Queue()
        self._free = threading.Semaphore(2 * threads if at_once is None else at_once)
        self._stopped, self._lock = False, threading.Lock()
        self._threads = [
            threading.Thread(target=self._work, name=f"xcorr-finish-{number}", daemon=True) for number in range(threads)
        ]

    def submit(self, job: Callable[[], T], abandon: Callable[[], None]) -> Later[T]:
        """Let a thread do a job; waits while too many do. `abandon` undoes what has begun, if it is never done.

        Raises Stopped where the threads were told to stop.
        """
        later = Later(job, abandon)
        while not self._free.acquire(timeout=0.5):
            self.check()
        with self._lock:
            self.check()
            self._queue.put(later)
        return later

    def check(self) -> None:
        """Raise Stopped where the threads were told to stop; for jobs that take long."""
        if self._stopped:
            raise Stopped

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            with self._lock:
                self._stopped = True
            while True:
                try:
                    later = self._queue.get_nowait()
                except queue.Empty:
                    break
                if later is not None:
                    later.abandon()
        for _ in self._threads:
            self._queue.put(None)
        # Who is bringing a file to the disk cannot be interrupted: some of a second, then the process ends without it.
        for thread in self._threads:
            thread.join(None if error is None else _PATIENCE / len(self._threads))

    def _work(self) -> None:
        while (later := self._queue.get()) is not None:
            if self._stopped:
                later.abandon()
            else:
                later.run()
            self._free.release()
