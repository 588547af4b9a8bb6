"""The steps of one stack: computed, then moved, assessed and brought to the disk by other threads.

Whatever goes wrong in one of them becomes the outcome of the stack, and leaves nothing that would pass for a result.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NamedTuple, TypeAlias

from xcorr_app.errors import OutputError, XcorrError
from xcorr_app.io import Checksums, SeriesSpec
from xcorr_app.pipeline.failures import reason_of
from xcorr_app.pipeline.finisher import Finisher, Later
from xcorr_app.pipeline.outcome import Known, Outcome
from xcorr_app.pipeline.resources import Resources, StackResources
from xcorr_app.pipeline.state import State, fingerprint
from xcorr_app.pipeline.work import Finished, Options, Plan, ResultT, Watcher, Work

Entry: TypeAlias = Known[ResultT] | Later[Any]
"""What became of a stack, or who is at it."""


def outcome_of(entry: Entry[ResultT]) -> Known[ResultT]:
    """What became of a stack, once all that is done later is done."""
    while isinstance(entry, Later):
        entry = entry.result()
    return entry


class Threads(NamedTuple, Generic[ResultT]):
    """That take a stack in turn, once it is computed."""

    follower: Finisher[Entry[ResultT]]
    """Moves."""
    assessor: Finisher[Finished[ResultT]]
    """Says how good the result is."""
    finisher: Finisher[Entry[ResultT]]
    """Brings to the disk, meanwhile as far as it can."""


@dataclass(frozen=True)
class Shared(Generic[ResultT]):
    """What the steps of all stacks of a run share."""

    plan: Plan[Options]
    work: Work[ResultT]
    state: State
    files: dict[str, dict[str, str]]
    """Checksums of :meth:`Work.files`."""
    versions: dict[str, str]
    resources: Resources
    resume: bool = False
    stop_at_defects: bool = False

    def mark(self, inputs: dict[str, str]) -> str:
        """Fingerprint of all that decides the results of a stack of these inputs."""
        decisive = {
            "program": self.work.program,
            "compression": self.resources.compression,
            "pyramid": self.resources.pyramid,
        } | self.plan.options.parameters()
        besides = {path: checksum for of_name in self.files.values() for path, checksum in of_name.items()}
        return fingerprint(decisive, inputs | besides, self.versions | {"device": self.plan.device.description})


class StackSteps(Generic[ResultT]):
    """What happens to one stack of a run.

    Parameters
    ----------
    shared
        By all stacks.
    spec
        The stack.
    told
        Called with its outcome, from any thread; returns what is kept of it.
    """

    def __init__(
        self,
        shared: Shared[ResultT],
        spec: SeriesSpec,
        told: Callable[[Outcome[ResultT]], Outcome[ResultT]] | None,
    ) -> None:
        self._shared, self._spec, self._told = shared, spec, told
        self._checksums = Checksums(spec.paths, shared.resources.stages.meter, spec.stamps)
        self._lent = StackResources(shared.resources, self._checksums)

    def ahead(self) -> None:
        """Let the stack be read while one before it is computed, unless an earlier run finished it."""
        if self._shared.resume and self._shared.state.knows(self._spec.name):
            return
        try:
            self._shared.work.ahead(self._spec, self._lent)
        except Exception:  # noqa: BLE001 - it comes again when the stack is computed
            self._lent.close()

    @property
    def is_begun(self) -> bool:
        """Whether the stack is being read."""
        return self._lent.is_begun

    def abandon(self) -> None:
        """Leave nothing of what was begun."""
        self._lent.abandon()

    def begin(self, threads: Threads[ResultT], watcher: Watcher | None) -> Entry[ResultT]:
        """Compute the stack, unless an earlier run did; `threads` do the rest."""
        shared, name = self._shared, self._spec.name
        if shared.resume and (known := self._restored()) is not None:
            return self._known(*known)
        self._lent.watched(watcher(name) if watcher is not None else None, threads.follower.check)

        def compute() -> Entry[ResultT]:
            # What an earlier run left goes first, so that old and new never mix.
            shared.state.discard(name, shared.work.outputs(name))
            rest = shared.work.process(self._spec, self._lent)
            with shared.resources.stages.waiting("move"):
                return threads.follower.submit(
                    partial(self._guarded, partial(self._follow, rest, threads)), self.abandon
                )

        return self._guarded(compute)

    def _guarded(self, step: Callable[[], Entry[ResultT]]) -> Entry[ResultT]:
        try:
            return step()
        except Exception as error:  # noqa: BLE001 - it becomes the stack's outcome
            return self._failed(error)
        except BaseException:
            self.abandon()
            raise

    def _follow(self, rest: Callable[[], Any], threads: Threads[ResultT]) -> Entry[ResultT]:
        """Do what needs the input, and hand on what does not."""
        done, check = rest(), threads.finisher.check
        self._lent.close()
        later = None if isinstance(done, Finished) else threads.assessor.submit(done, lambda: None)
        told = (lambda: done) if later is None else partial(later.result, check)
        return threads.finisher.submit(partial(self._finish, told, check), self.abandon)

    def _finish(self, told: Callable[[], Finished[ResultT]], check: Callable[[], None]) -> Known[ResultT]:
        """Bring results to the disk; what they are may still be `told` meanwhile. `check` raises in a stopped run."""
        shared, spec = self._shared, self._spec
        try:
            self._lent.prepare()
            check()
            done = told()
            check()
            facts = done.facts | {"seconds": self._lent.seconds, "decisions": [shared.work.decide(spec).as_record()]}
            known = self._lent.complete()
            inputs = self._checksums.finished()
            mark, kept = shared.mark(inputs), done.keep()
            kept = {"source": spec.source, "inputs": inputs} | kept
            shared.state.save(spec.name, mark, done.outputs, facts, kept, known)
        except Exception as error:  # noqa: BLE001 - it becomes the stack's outcome
            return self._failed(error)
        except BaseException:
            self.abandon()
            raise
        return self._known(Outcome(spec.name, facts, done.result, flagged=shared.work.is_flagged(done)), inputs)

    def _failed(self, error: Exception) -> Known[ResultT]:
        shared, name = self._shared, self._spec.name
        self.abandon()
        with suppress(OutputError):
            # A table beside a failure would pass for a result.
            shared.state.discard(name, shared.work.outputs(name))
        if shared.stop_at_defects and not isinstance(error, XcorrError | MemoryError):
            raise error
        reason = reason_of(error, shared.work.less_memory)
        return self._known(Outcome(name, failure=reason), self._checksums.finished())

    def _known(self, outcome: Outcome[ResultT], inputs: dict[str, str]) -> Known[ResultT]:
        return Known(outcome if self._told is None else self._told(outcome), inputs)

    def _restored(self) -> tuple[Outcome[ResultT], dict[str, str]] | None:
        """Outcome and checksums of a stack that an earlier run finished; None where it is to be computed."""
        shared, name = self._shared, self._spec.name
        if not shared.state.knows(name):
            return None
        inputs = self._checksums.finished()
        record = shared.state.load(name, shared.mark(inputs))
        if record is None or record["facts"].get("unreadable"):
            # What could not be read may be readable now: the disk was away, or another program was writing.
            return None
        try:
            result = shared.work.restored(name, record)
            if result is None:
                return None
            before = Finished(record["facts"], [], result)
            flagged = shared.work.is_flagged(before)
        except Exception:  # noqa: BLE001 - a record may say anything; the stack is computed again
            return None
        return Outcome(name, before.facts, result, flagged=flagged, resumed=True), inputs
