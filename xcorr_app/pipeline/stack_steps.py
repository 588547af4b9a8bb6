"""The steps of one stack: computed, then brought to the disk by another thread.

Whatever goes wrong in one of them becomes the outcome of the stack, and leaves nothing that would pass for a result.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeAlias

import numpy as np

from xcorr_app.errors import DeviceLostError, OutputError, XcorrError
from xcorr_app.gpu.runtime.lost import is_lost
from xcorr_app.gpu.runtime.select import Device
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
    notes: tuple[str, ...] = ()
    """What users should know of how all stacks are computed."""

    def on_cpu(self, note: str) -> Shared[ResultT]:
        """Return the same for stacks that the CPU computes, in the place of a device."""
        plan = replace(self.plan, device=Device(np, "CPU"))
        work: Any = type(self.work)
        return replace(self, plan=plan, work=work(plan), notes=(*self.notes, note))

    def mark(self, inputs: dict[str, str]) -> str:
        """Fingerprint of all that decides the results of a stack of these inputs."""
        decisive = {"program": self.work.program} | self.plan.options.parameters()
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
        self._lent.notes += shared.notes

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

    def begin(self, finisher: Finisher[Known[ResultT]], watcher: Watcher | None) -> Entry[ResultT]:
        """Compute the stack, unless an earlier run did; the `finisher` brings it to the disk.

        Raises DeviceLostError where the device cannot compute another one.
        """
        shared, name = self._shared, self._spec.name
        if shared.resume and (known := self._restored()) is not None:
            return self._known(*known)
        self._lent.watched(watcher(name) if watcher is not None else None, finisher.check)

        try:
            # What an earlier run left goes first, so that old and new never mix.
            shared.state.discard(name, shared.work.outputs(name))
            done = shared.work.process(self._spec, self._lent)
            self._lent.close()
            with shared.resources.stages.waiting("finish"):
                return finisher.submit(partial(self._finish, done, finisher.check), self.abandon)
        except Exception as error:
            if is_lost(shared.plan.device.xp):
                self.abandon()
                what = str(error).partition("\n")[0] or type(error).__name__
                raise DeviceLostError(f"the GPU stopped working at {name} ({what})") from error
            return self._failed(error)
        except BaseException:
            self.abandon()
            raise

    def _finish(self, done: Finished[ResultT], check: Callable[[], None]) -> Known[ResultT]:
        """Bring results to the disk; `check` raises in a run that is stopped."""
        shared, spec = self._shared, self._spec
        try:
            self._lent.prepare()
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
