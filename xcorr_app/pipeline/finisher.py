"""What is done of a stack while the next one is computed: brought to the disk, recorded, drawn.

A few threads take stacks in turn. A bounded number of stacks may wait, no more; an interruption abandons what waits and
tells who works to stop, so that nothing half-written is left.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

T = TypeVar("T")

_PATIENCE = 0.45
"""Seconds that threads which were told to stop are waited for."""


class Stopped(BaseException):
    """The run was interrupted, and this thread with it; no `Exception`, so that nobody takes it for a failure."""


class _Job(NamedTuple):
    """What a thread does, what undoes what has begun if nobody does it, and its outcome."""

    do: Callable[[], object]
    abandon: Callable[[], None]
    outcome: Future[object]


class Finisher:
    """Threads that finish stacks; as a context, it ends when all are finished, or at once where an error comes out.

    Parameters
    ----------
    threads
        How many.
    at_once
        Stacks that are worked on or wait, at most.
    """

    def __init__(self, threads: int, at_once: int | None = None) -> None:
        self._queue: queue.Queue[_Job | None] = queue.Queue()
        self._free = threading.Semaphore(2 * threads if at_once is None else at_once)
        self._stopped, self._lock = False, threading.Lock()
        # No pool of the library, which lets a process end only when all of its threads have: see below.
        self._threads = [
            threading.Thread(target=self._work, name=f"xcorr-finish-{number}", daemon=True) for number in range(threads)
        ]

    def submit(self, do: Callable[[], T], abandon: Callable[[], None]) -> Future[T]:
        """Let a thread do a job; waits while too many do. `abandon` undoes what has begun, if it is never done.

        Raises Stopped where the threads were told to stop.
        """
        outcome: Future[T] = Future()
        while not self._free.acquire(timeout=0.5):
            self.check()
        with self._lock:
            self.check()
            self._queue.put(_Job(do, abandon, outcome))  # type: ignore[arg-type]  # it holds outcomes of all kinds
        return outcome

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
            with suppress(queue.Empty):
                while True:
                    self._take(wait=False)
        for _ in self._threads:
            self._queue.put(None)
        # Who is bringing a file to the disk cannot be interrupted: some of a second, then the process ends without it.
        for thread in self._threads:
            thread.join(None if error is None else _PATIENCE / len(self._threads))

    def _work(self) -> None:
        while self._take():
            self._free.release()

    def _take(self, *, wait: bool = True) -> bool:
        """Do the next job, or abandon it where all is stopped; whether there is more to come."""
        job = self._queue.get(wait)
        if job is None:
            return False
        try:
            if self._stopped:
                job.abandon()
            self.check()
            job.outcome.set_result(job.do())
        except BaseException as error:  # noqa: BLE001 - it is raised where the outcome is asked for
            job.outcome.set_exception(error)
        return True
