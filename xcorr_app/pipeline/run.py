"""A run of one command over many stacks: failures apart, resumable, and one record of it all.

Stacks are computed one after the other; on a device, the next ones are read meanwhile. What follows from a stack's
result, such as moving its frames, is done by a second thread while the next stack is computed; what is said of the
result, by a third; what brings it to the disk, its checksum, record and drawings, by others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from xcorr_app.decision import Decision
from xcorr_app.errors import OutputError, XcorrError
from xcorr_app.gpu.runtime.placement import same_device
from xcorr_app.gpu.runtime.select import Device
from xcorr_app.io import Checksums, Discovery, SeriesSpec, atomic_write_text
from xcorr_app.io.opened import announce
from xcorr_app.pipeline.environment import processor, versions
from xcorr_app.pipeline.failures import reason_of
from xcorr_app.pipeline.finisher import Finisher, Later
from xcorr_app.pipeline.output import RECORD
from xcorr_app.pipeline.resources import Resources, StackResources
from xcorr_app.pipeline.stages import Stages
from xcorr_app.pipeline.state import State, checksums, fingerprint
from xcorr_app.registration.passes import Progress, worker_count


class Options(Protocol):
    """Options of a command, as far as a run needs to know them."""

    def parameters(self) -> dict[str, Any]:
        """Everything that decides the results, as plain values: part of ``run.json`` and of what a resume compares."""


_MOST_ANNOUNCED = 64
_BYTES_ANNOUNCED = 1 << 28
_AHEAD = 2
"""Stacks that may be read while one is computed."""

OptionsT_co = TypeVar("OptionsT_co", bound=Options, covariant=True)
ResultT = TypeVar("ResultT")

Watcher = Callable[[str], Progress | None]
"""Called with a stack's name when it begins; returns what is told of its progress."""


@dataclass(frozen=True)
class Plan(Generic[OptionsT_co]):
    """What a run would do: series, device, output folder."""

    discovery: Discovery
    device: Device
    inputs: tuple[Path, ...]
    out: Path
    options: OptionsT_co


@dataclass(frozen=True)
class Finished(Generic[ResultT]):
    """What a command made of one stack."""

    facts: dict[str, Any]
    """Timings and counts for ``run.json``."""
    outputs: list[Path]
    result: ResultT
    keep: Callable[[], dict[str, Any]] = dict
    """Called once the outputs are in place, by another thread: stores what is no plain value, and returns the plain
    values from which :meth:`Work.restored` makes the result again."""


Rest: TypeAlias = Callable[[], Finished[ResultT] | Callable[[], Finished[ResultT]]]


class Work(Protocol[ResultT]):
    """What one command does to a stack."""

    program: str
    """As a user types it, such as ``xcorr align``."""
    less_memory: str
    """What a user can do where memory ran out."""

    def files(self) -> dict[str, tuple[Path, ...]]:
        """Files besides the inputs that decide the results, by their name in ``run.json``."""

    def outputs(self, name: str) -> list[Path]:
        """Files that the results of a stack of this name may have; removed before they are computed again."""

    def decide(self, spec: SeriesSpec) -> Decision:
        """Say what would compute the results of a stack, and why."""

    def ahead(self, spec: SeriesSpec, resources: StackResources) -> None:
        """Begin to read what `process` will need, while the stack before is computed; `process` meets errors again."""

    def process(self, spec: SeriesSpec, resources: StackResources) -> Rest[ResultT]:
        """Compute the results of a stack; what is returned does the rest, while the next stack is computed.

        If that again returns what is to be done, it needs nothing of the input, and the next stack does not wait for
        it. Files begun through `resources` are completed, and sources opened through it closed, afterwards.
        """

    def restored(self, name: str, record: dict[str, Any]) -> ResultT | None:
        """Return the result that the record of an earlier run speaks of; None where it cannot be used."""

    def is_flagged(self, finished: Finished[ResultT]) -> bool:
        """Whether a part of a stack that was finished counts as failed."""


@dataclass(frozen=True)
class Outcome(Generic[ResultT]):
    """What became of one stack, or of one file that is in none."""

    name: str
    facts: dict[str, Any] = field(default_factory=dict)
    """Timings and counts for ``run.json``; empty where `failure` is set."""
    result: ResultT | None = None
    failure: str | None = None
    flagged: bool = False
    """A part of it counts as failed."""
    resumed: bool = False
    """An earlier run had finished it."""

    @property
    def failed(self) -> bool:
        """The stack, or a part of it, counts as failed."""
        return self.failure is not None or self.flagged


@dataclass(frozen=True)
class Run(Generic[ResultT]):
    """What a run did."""

    outcomes: tuple[Outcome[ResultT], ...]
    record: Path
    stages: Stages

    @property
    def failed(self) -> bool:
        """Something failed, or is flagged as failed."""
        return any(outcome.failed for outcome in self.outcomes)

    @property
    def resumed(self) -> tuple[str, ...]:
        """Stacks that an earlier run had finished."""
        return tuple(outcome.name for outcome in self.outcomes if outcome.resumed)


def run_stacks(
    plan: Plan[Options],
    work: Work[ResultT],
    *,
    resume: bool = False,
    stop_at_defects: bool = False,
    watcher: Watcher | None = None,
    report: Callable[[Sequence[Outcome[ResultT]]], None] | None = None,
    resources: Resources | None = None,
    finished: Callable[[int, Outcome[ResultT]], Outcome[ResultT]] | None = None,
    elsewhere: Elsewhere | None = None,
) -> Run[ResultT]:
    """Process every series of a plan whose output folder is ready, then write the report and ``run.json``.

    One series that fails does not stop the others. Neither does one that runs into a defect of the program, unless
    `stop_at_defects` lets the exception out. `finished` is called with the number of a stack and its outcome as soon as
    that is known, from any thread, and returns what is kept of it; `report` with all outcomes before the record
    is written, which thus comes last. With `elsewhere`, other processes compute the stacks.
    """
    started = datetime.now(UTC)
    resources = resources or Resources()
    stages, found = resources.stages, versions()
    files = {name: checksums(paths) for name, paths in work.files().items()}
    how: Any = {"resume": resume, "stop_at_defects": stop_at_defects, "watcher": watcher, "finished": finished}
    compute = compute_stacks if elsewhere is None else elsewhere.compute_stacks
    known = compute(plan, work, resources, files, **how)
    outcomes = [entry.outcome for entry in known]
    outcomes += [
        Outcome(failure.path.name or str(failure.path), failure=failure.message) for failure in plan.discovery.failures
    ]
    if report is not None:
        with stages.waiting("report"):
            report(outcomes)
    records = {}
    for entry in known:
        failure = {} if entry.outcome.failure is None else {"failure": entry.outcome.failure}
        records[entry.outcome.name] = {"inputs": entry.inputs} | entry.outcome.facts | failure
    run = Run(tuple(outcomes), plan.out / RECORD, stages)
    seconds = (datetime.now(UTC) - started).total_seconds()
    record = {
        "program": work.program,
        "versions": found,
        "device": plan.device.description,
        "processor": processor(),
        "parameters": plan.options.parameters(),
        "inputs": [str(path) for path in plan.inputs],
        **files,
        "checksum": "xxh3-128",
        "compression": resources.compression,
        "pyramid": resources.pyramid,
        "layout": plan.discovery.layout,
        "started": started.isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "timings": stages.as_record(),
        "resumed": list(run.resumed),
        "failed": run.failed,
        "failures": {str(failure.path): failure.message for failure in plan.discovery.failures},
        "stacks": records,
    }
    if elsewhere is not None:
        record["cluster"] = elsewhere.as_record()
    atomic_write_text(run.record, json.dumps(record, indent=2) + "\n")
    return run


def compute_stacks(
    plan: Plan[Options],
    work: Work[ResultT],
    resources: Resources,
    files: dict[str, dict[str, str]],
    *,
    resume: bool = False,
    stop_at_defects: bool = False,
    watcher: Watcher | None = None,
    finished: Callable[[int, Outcome[ResultT]], Outcome[ResultT]] | None = None,
) -> list[Known[ResultT]]:
    """Process every series of a plan in this process; `files` are the checksums of :meth:`Work.files`."""
    state, found, prepare = State(plan.out), versions(), same_device(plan.device.xp)
    loop = _Loop(plan, work, state, files, found, resources, resume=resume, stop_at_defects=stop_at_defects)
    entries: list[_Entry[ResultT]] = []
    with (
        closing(resources.bringing),
        closing(loop),
        Finisher[Known[ResultT]](max(2, min(4, worker_count())), prepare=prepare) as finisher,
        Finisher[_Entry[ResultT]](1, at_once=2, prepare=prepare) as assessor,
        Finisher[_Entry[ResultT]](1, at_once=1, prepare=prepare) as follower,
    ):
        series = plan.discovery.series
        for number, spec in enumerate(series):
            for following in series[number + 1 : number + 2]:
                announce_files(following.paths)
            for place in range(number, min(number + 1 + _AHEAD, len(series))):
                loop.ahead(place, series[place])
            entries.append(loop.begun(spec, (follower, assessor), finisher, watcher, number, finished))
            for entry in entries[-2:]:
                if isinstance(entry, Later):
                    entry.raise_error()
        with resources.stages.waiting("finish"):
            return [_known(entry) for entry in entries]


class Elsewhere(Protocol):
    """Other processes that compute the stacks of a run, such as the workers of a cluster."""

    def compute_stacks(
        self,
        plan: Plan[Options],
        work: Work[ResultT],
        resources: Resources,
        files: dict[str, dict[str, str]],
        *,
        resume: bool = False,
        stop_at_defects: bool = False,
        watcher: Watcher | None = None,
        finished: Callable[[int, Outcome[ResultT]], Outcome[ResultT]] | None = None,
    ) -> list[Known[ResultT]]:
        """Do what the function of this name does in this process."""

    def as_record(self) -> dict[str, Any]:
        """Plain values for ``run.json``: who computed what."""


def announce_files(paths: Sequence[Path]) -> None:
    """Let the system read ahead what the next stack will need, as far as it will not push out what this one does."""
    for path in paths[:_MOST_ANNOUNCED]:
        announce(path, _BYTES_ANNOUNCED // min(len(paths), _MOST_ANNOUNCED))


def explain_stacks(plan: Plan[Options], work: Work[ResultT]) -> list[tuple[str, Decision | str]]:
    """Name of every stack that would be processed, with what decided for it, or why it would fail."""
    explained: list[tuple[str, Decision | str]] = []
    for spec in plan.discovery.series:
        try:
            explained.append((spec.name, work.decide(spec)))
        except XcorrError as error:
            explained.append((spec.name, str(error)))
    return explained


@dataclass(frozen=True)
class Known(Generic[ResultT]):
    """A stack's outcome and the checksums of its input."""

    outcome: Outcome[ResultT]
    inputs: dict[str, str]


_Entry = Known[ResultT] | Later[Any]


def _known(entry: _Entry[ResultT]) -> Known[ResultT]:
    """What became of a stack, once all that is done later is done."""
    while isinstance(entry, Later):
        entry = entry.result()
    return entry


class _Loop(Generic[ResultT]):
    """What happens to each stack of a run."""

    def __init__(
        self,
        plan: Plan[Options],
        work: Work[ResultT],
        state: State,
        files: dict[str, dict[str, str]],
        found: dict[str, str],
        resources: Resources,
        *,
        resume: bool,
        stop_at_defects: bool,
    ) -> None:
        self._work, self._state, self._resources = work, state, resources
        self._resume, self._stop_at_defects = resume, stop_at_defects
        self._decisive = {
            "program": work.program,
            "compression": resources.compression,
            "pyramid": resources.pyramid,
        } | plan.options.parameters()
        self._besides = {path: checksum for of_name in files.values() for path, checksum in of_name.items()}
        self._ran_on = found | {"device": plan.device.description}
        self._lent: dict[int, StackResources] = {}

    def ahead(self, number: int, spec: SeriesSpec) -> None:
        """Let a stack be read while the one before it is computed, unless an earlier run finished it."""
        if number in self._lent or (self._resume and self._state.knows(spec.name)):
            return
        lent = self._lent[number] = self._lending(spec)
        try:
            self._work.ahead(spec, lent)
        except Exception:  # noqa: BLE001 - it comes again when the stack is processed
            lent.close()

    def close(self) -> None:
        """Give up what was read ahead."""
        while self._lent:
            self._lent.popitem()[1].abandon()

    def _lending(self, spec: SeriesSpec) -> StackResources:
        return StackResources(self._resources, Checksums(spec.paths, self._resources.stages.meter))

    def begun(
        self,
        spec: SeriesSpec,
        one_by_one: tuple[Finisher[_Entry[ResultT]], Finisher[_Entry[ResultT]]],
        finisher: Finisher[Known[ResultT]],
        watcher: Watcher | None,
        number: int,
        finished: Callable[[int, Outcome[ResultT]], Outcome[ResultT]] | None,
    ) -> _Entry[ResultT]:
        """Compute a stack, unless an earlier run did; the rest is left to the two of `one_by_one`, then `finisher`."""
        follower, assessor = one_by_one
        begun = self._lent.pop(number, None) or self._lending(spec)
        checksums = begun.checksums

        def told(known: Known[ResultT]) -> Known[ResultT]:
            return known if finished is None else replace(known, outcome=finished(number, known.outcome))

        if self._resume and (known := self._restored(spec.name, checksums)) is not None:
            return told(known)
        begun.watched(watcher(spec.name) if watcher is not None else None, follower.check)

        def failed(error: Exception) -> Known[ResultT]:
            begun.abandon()
            with suppress(OutputError):
                # A table beside a failure would pass for a result.
                self._state.discard(spec.name, self._work.outputs(spec.name))
            if self._stop_at_defects and not isinstance(error, XcorrError | MemoryError):
                raise error
            reason = reason_of(error, self._work.less_memory)
            return told(Known(Outcome(spec.name, failure=reason), checksums.finished()))

        try:
            # What an earlier run left goes first, so that old and new never mix.
            self._state.discard(spec.name, self._work.outputs(spec.name))
            rest = self._work.process(spec, begun)
        except Exception as error:  # noqa: BLE001 - it becomes the stack's outcome
            return failed(error)
        except BaseException:
            begun.abandon()
            raise

        def guarded(step: Callable[[], _Entry[ResultT]]) -> _Entry[ResultT]:
            try:
                return step()
            except Exception as error:  # noqa: BLE001 - it becomes the stack's outcome
                return failed(error)
            except BaseException:
                begun.abandon()
                raise

        def follow() -> _Entry[ResultT]:
            done = rest()
            begun.close()
            if isinstance(done, Finished):
                return finisher.submit(partial(finish, done), begun.abandon)
            return assessor.submit(partial(guarded, partial(assess, done)), begun.abandon)

        def assess(done: Callable[[], Finished[ResultT]]) -> _Entry[ResultT]:
            return finisher.submit(partial(finish, done()), begun.abandon)

        def finish(done: Finished[ResultT]) -> Known[ResultT]:
            try:
                facts = done.facts | {"seconds": begun.seconds, "decisions": [self._work.decide(spec).as_record()]}
                begun.complete()
                inputs = checksums.finished()
                self._state.save(spec.name, self._mark(inputs), done.outputs, facts, done.keep(), self._work.program)
            except Exception as error:  # noqa: BLE001 - it becomes the stack's outcome
                return failed(error)
            outcome = Outcome(spec.name, facts, done.result, flagged=self._work.is_flagged(done))
            return told(Known(outcome, inputs))

        try:
            with self._resources.stages.waiting("move"):
                return follower.submit(partial(guarded, follow), begun.abandon)
        except BaseException:
            begun.abandon()
            raise

    def _mark(self, inputs: dict[str, str]) -> str:
        return fingerprint(self._decisive, inputs | self._besides, self._ran_on)

    def _restored(self, name: str, checksums: Checksums) -> Known[ResultT] | None:
        if not self._state.knows(name):
            return None
        inputs = checksums.finished()
        record = self._state.load(name, self._mark(inputs))
        if record is None or record["facts"].get("unreadable"):
            # What could not be read may be readable now: the disk was away, or another program was writing.
            return None
        try:
            result = self._work.restored(name, record)
            if result is None:
                return None
            before = Finished(record["facts"], [], result)
            flagged = self._work.is_flagged(before)
        except Exception:  # noqa: BLE001 - a record may say anything; the stack is computed again
            return None
        return Known(Outcome(name, before.facts, result, flagged=flagged, resumed=True), inputs)
