"""The steps of one stack: read ahead, computed, then drawn, brought to the disk and recorded by another thread.

Whatever goes wrong in one of them becomes the outcome of the stack, and leaves nothing that would pass for a result. A
few threads finish stacks in turn. A bounded number may wait, no more; an interruption abandons what waits and tells who
works to stop, so that nothing half-written is left.
"""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np

from xcorr_app.errors import DeviceLostError, OutputError, XcorrError
from xcorr_app.gpu.runtime.lost import is_lost
from xcorr_app.io import Checksums, SeriesSpec
from xcorr_app.pipeline.resources import Resources, StackResources
from xcorr_app.pipeline.work import Outcome, StackResult, Watcher, Work, reason_of

T = TypeVar("T")

_PATIENCE = 0.45
"""Seconds that threads which were told to stop are waited for."""


class Interruption(BaseException):
    """The run was interrupted, and this thread with it; no `Exception`, so that nobody takes it for a failure."""


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
        # What a thread does, what undoes what has begun if nobody does it, and its outcome.
        self._queue: queue.Queue[tuple[Callable[[], Any], Callable[[], None], Future[Any]] | None] = queue.Queue()
        self._free = threading.Semaphore(2 * threads if at_once is None else at_once)
        self._stopped, self._lock = False, threading.Lock()
        # No pool of the library, which lets a process end only when all of its threads have: see below.
        self._threads = [
            threading.Thread(target=self._work, name=f"xcorr-finish-{number}", daemon=True) for number in range(threads)
        ]

    def submit(self, do: Callable[[], T], abandon: Callable[[], None]) -> Future[T]:
        """Let a thread do a job; waits while too many do. `abandon` undoes what has begun, if it is never done.

        Raises Interruption where the threads were told to stop.
        """
        outcome: Future[T] = Future()
        while not self._free.acquire(timeout=0.5):
            self.check()
        with self._lock:
            self.check()
            self._queue.put((do, abandon, outcome))
        return outcome

    def check(self) -> None:
        """Raise Interruption where the threads were told to stop; for jobs that take long."""
        if self._stopped:
            raise Interruption

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
        do, abandon, outcome = job
        try:
            if self._stopped:
                abandon()
            self.check()
            outcome.set_result(do())
        except BaseException as error:  # noqa: BLE001 - it is raised where the outcome is asked for
            outcome.set_exception(error)
        return True


class StackSteps:
    """What happens to one stack of a run."""

    def __init__(self, work: Work[Any], resources: Resources, spec: SeriesSpec) -> None:
        self._work, self._stages, self._spec = work, resources.stages, spec
        self._checksums = Checksums(spec.paths, resources.stages.meter, spec.stamps)
        self._lent = StackResources(resources, self._checksums)
        self._lent.notes += work.notes
        self.opened: Any = None
        """The stack as it is being read ahead."""

    def ahead(self) -> None:
        """Let the stack be read for a device while one before it is computed, unless an earlier run finished it.

        A CPU that reads ahead would not compute meanwhile.
        """
        work = self._work
        if work.device.xp is np or (work.options.resume and work.state.knows(self._spec.name)):
            return
        try:
            self.opened = work.begin(self._spec, self._lent, ahead=True)
        except Exception:  # noqa: BLE001 - it comes again when the stack is computed
            self._lent.close()

    def abandon(self) -> None:
        """Leave nothing of what was begun."""
        self.opened = None
        self._lent.abandon()

    def begin(self, finisher: Finisher, watcher: Watcher | None) -> Future[Outcome]:
        """Compute the stack, unless an earlier run did; the `finisher` brings it to the disk.

        Raises DeviceLostError where the device cannot compute another one.
        """
        work, name = self._work, self._spec.name
        if work.options.resume and (known := self._restored()) is not None:
            return _known(known)
        self._lent.watched(watcher(name) if watcher is not None else None, finisher.check)
        try:
            # What an earlier run left goes first, so that old and new never mix.
            work.state.discard(name, work.outputs(name))
            opened, self.opened = self.opened, None
            done = work.process(self._spec, self._lent, opened or work.begin(self._spec, self._lent))
            del opened
            self._lent.close()
            with self._stages.waiting("finish"):
                return finisher.submit(partial(self._finish, done, finisher.check), self.abandon)
        except Exception as error:
            if not is_lost(work.device.xp):
                return _known(self._failed(error))
            self.abandon()
            what = str(error).partition("\n")[0] or type(error).__name__
            raise DeviceLostError(f"the GPU stopped working at {name} ({what})") from error
        except BaseException:
            self.abandon()
            raise

    def _finish(self, done: StackResult, check: Callable[[], None]) -> Outcome:
        """Draw results and bring them to the disk; `check` raises in a run that is stopped."""
        try:
            return self._recorded(done, check)
        except Exception as error:  # noqa: BLE001 - it becomes the stack's outcome
            return self._failed(error)
        except BaseException:
            self.abandon()
            raise

    def _recorded(self, done: StackResult, check: Callable[[], None]) -> Outcome:
        work, spec = self._work, self._spec
        check()
        facts = done.facts | {"seconds": self._lent.seconds, "decisions": [work.decide(spec).as_record()]}
        kept, known = work.draw(done, self._lent), self._lent.complete()
        inputs = self._checksums.finished()
        kept = {"source": spec.source, "inputs": inputs} | kept
        work.state.save(spec.name, work.fingerprint(inputs), done.outputs, facts, kept, known)
        flagged = work.is_flagged(done.result)
        return Outcome(spec.name, facts, done.result, flagged=flagged, inputs=inputs)

    def _failed(self, error: Exception) -> Outcome:
        work, name = self._work, self._spec.name
        self.abandon()
        with suppress(OutputError):
            # A table beside a failure would pass for a result.
            work.state.discard(name, work.outputs(name))
        if work.options.debug and not isinstance(error, XcorrError | MemoryError):
            raise error
        return Outcome(name, failure=reason_of(error, work.less_memory), inputs=self._checksums.finished())

    def _restored(self) -> Outcome | None:
        """Outcome of a stack that an earlier run finished; None where it is to be computed."""
        work, name = self._work, self._spec.name
        if not work.state.knows(name):
            return None
        inputs = self._checksums.finished()
        record = work.state.load(name, work.fingerprint(inputs))
        if record is None or record["facts"].get("unreadable"):
            # What could not be read may be readable now: the disk was away, or another program was writing.
            return None
        return outcome_of(work, name, record, inputs, resumed=True)


def outcome_of(
    work: Work[Any], name: str, record: dict[str, Any], inputs: dict[str, str], *, resumed: bool
) -> Outcome | None:
    """What became of a stack as its record has it; None where that cannot be used."""
    try:
        result = work.restored(name, record)
        if result is None:
            return None
        return Outcome(name, record["facts"], result, flagged=work.is_flagged(result), resumed=resumed, inputs=inputs)
    except Exception:  # noqa: BLE001 - a record may say anything; the stack is computed again
        return None


def _known(outcome: Outcome) -> Future[Outcome]:
    """An outcome that is there already."""
    known: Future[Outcome] = Future()
    known.set_result(outcome)
    return known
