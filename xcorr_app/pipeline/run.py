"""A run of one command over many stacks: one after the other, failures apart, resumable, and one record of it all."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from xcorr_app.decision import Decision
from xcorr_app.errors import XcorrError
from xcorr_app.gpu.runtime.select import Device
from xcorr_app.io import Discovery, SeriesSpec, atomic_write_text
from xcorr_app.pipeline.environment import processor, versions
from xcorr_app.pipeline.failures import reason_of
from xcorr_app.pipeline.output import RECORD
from xcorr_app.pipeline.state import State, checksums, fingerprint
from xcorr_app.registration.passes import Progress


class Options(Protocol):
    """Options of a command, as far as a run needs to know them."""

    def parameters(self) -> dict[str, Any]:
        """Everything that decides the results, as plain values: part of ``run.json`` and of what a resume compares."""


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
    kept: dict[str, Any] = field(default_factory=dict)
    """Plain values from which :meth:`Work.restored` makes the result again."""


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

    def process(self, spec: SeriesSpec, progress: Progress | None) -> Finished[ResultT]:
        """Compute and write the results of a stack."""

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

    @property
    def failed(self) -> bool:
        """Something failed, or is flagged as failed."""
        return any(outcome.failed for outcome in self.outcomes)

    @property
    def resumed(self) -> tuple[str, ...]:
        """Stacks that an earlier run had finished."""
        return tuple(outcome.name for outcome in self.outcomes if outcome.resumed)


@dataclass
class Stopwatch:
    """Seconds by stage."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time one stage."""
        start = time.perf_counter()
        yield
        self.seconds[name] = round(time.perf_counter() - start, 3)


def run_stacks(
    plan: Plan[Options],
    work: Work[ResultT],
    *,
    resume: bool = False,
    stop_at_defects: bool = False,
    watcher: Watcher | None = None,
    report: Callable[[Sequence[Outcome[ResultT]], dict[str, str]], None] | None = None,
) -> Run[ResultT]:
    """Process every series of a plan whose output folder is ready, then write the report and ``run.json``.

    One series that fails does not stop the others. Neither does one that runs into a defect of the program, unless
    `stop_at_defects` lets the exception out. `report` is called with all outcomes and the versions before the record
    is written, which thus comes last.
    """
    started = datetime.now(UTC)
    state, found = State(plan.out), versions()
    files = {name: checksums(paths) for name, paths in work.files().items()}
    decisive = {"program": work.program} | plan.options.parameters()
    besides = {path: checksum for of_name in files.values() for path, checksum in of_name.items()}
    outcomes: list[Outcome[ResultT]] = []
    records: dict[str, Any] = {}
    for spec in plan.discovery.series:
        inputs = checksums(spec.paths)
        mark = fingerprint(decisive, inputs | besides, found | {"device": plan.device.description})
        outcome = _restored(work, state, spec.name, mark) if resume else None
        if outcome is None:
            try:
                outcome = _processed(work, state, spec, mark, watcher)
            except Exception as error:
                if stop_at_defects and not isinstance(error, XcorrError | MemoryError):
                    raise
                outcome = Outcome(spec.name, failure=reason_of(error, work.less_memory))
        outcomes.append(outcome)
        failure = {} if outcome.failure is None else {"failure": outcome.failure}
        records[spec.name] = {"inputs": inputs} | outcome.facts | failure
    outcomes += [
        Outcome(failure.path.name or str(failure.path), failure=failure.message) for failure in plan.discovery.failures
    ]
    if report is not None:
        report(outcomes, found)
    run = Run(tuple(outcomes), plan.out / RECORD)
    record = {
        "program": work.program,
        "versions": found,
        "device": plan.device.description,
        "processor": processor(),
        "parameters": plan.options.parameters(),
        "inputs": [str(path) for path in plan.inputs],
        **files,
        "layout": plan.discovery.layout,
        "started": started.isoformat(timespec="seconds"),
        "seconds": round((datetime.now(UTC) - started).total_seconds(), 3),
        "resumed": list(run.resumed),
        "failed": run.failed,
        "failures": {str(failure.path): failure.message for failure in plan.discovery.failures},
        "stacks": records,
    }
    atomic_write_text(run.record, json.dumps(record, indent=2) + "\n")
    return run


def explain_stacks(plan: Plan[Options], work: Work[ResultT]) -> list[tuple[str, Decision | str]]:
    """Name of every stack that would be processed, with what decided for it, or why it would fail."""
    explained: list[tuple[str, Decision | str]] = []
    for spec in plan.discovery.series:
        try:
            explained.append((spec.name, work.decide(spec)))
        except XcorrError as error:
            explained.append((spec.name, str(error)))
    return explained


def _restored(work: Work[ResultT], state: State, name: str, mark: str) -> Outcome[ResultT] | None:
    record = state.load(name, mark)
    if record is None:
        return None
    result = work.restored(name, record)
    if result is None:
        return None
    finished = Finished(record["facts"], [], result)
    return Outcome(name, finished.facts, result, flagged=work.is_flagged(finished), resumed=True)


def _processed(
    work: Work[ResultT], state: State, spec: SeriesSpec, mark: str, watcher: Watcher | None
) -> Outcome[ResultT]:
    """Process a stack and record it; what an earlier run left of it goes first, so that old and new never mix."""
    state.discard(spec.name, work.outputs(spec.name))
    finished = work.process(spec, watcher(spec.name) if watcher is not None else None)
    facts = finished.facts | {"decisions": [work.decide(spec).as_record()]}
    state.save(spec.name, mark, finished.outputs, facts, finished.kept)
    return Outcome(spec.name, facts, finished.result, flagged=work.is_flagged(finished))
