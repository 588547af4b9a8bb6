"""A run of one command over many stacks: failures apart, resumable, and one record of it all.

Stacks are computed one after the other by the thread of the run, which alone tells a device what to do: it measures,
moves and assesses. Others read the next stacks meanwhile and bring them to the device, write what was moved, and bring
what is done to the disk, with its checksum, record and drawings.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from xcorr_app.decision import Decision
from xcorr_app.errors import DeviceLostError, XcorrError
from xcorr_app.io import atomic_write_text
from xcorr_app.io.opened import announce
from xcorr_app.pipeline.environment import processor, versions
from xcorr_app.pipeline.finisher import Finisher, Later
from xcorr_app.pipeline.outcome import Known, Outcome, Run
from xcorr_app.pipeline.resources import Resources
from xcorr_app.pipeline.stack_steps import Entry, Shared, StackSteps, outcome_of
from xcorr_app.pipeline.state import RECORD, RECORD_VERSION, State, asked_of, checksums
from xcorr_app.pipeline.work import Options, Plan, ResultT, Watcher, Work
from xcorr_app.registration.stack.passes import worker_count

_MAX_ANNOUNCED = 64
_BYTES_ANNOUNCED = 1 << 28
_AHEAD = 2
"""Stacks that may be read while one is computed."""
_FINISHED_AT_ONCE = 8
"""Stacks that are brought to the disk, at most: each waits for it several times, and it is to have something to do."""
_SECONDS_TO_HAND_OVER = 0.0005
"""After which a thread that computes in Python lets another go on; Python's own are ten times as many."""
_HANDING_OVER, _BEFORE = threading.Lock(), list[float]()


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
    State(plan.out).begin(asked_of(work.program, plan.options.parameters(), plan.inputs))
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
    sources = {spec.name: spec.source for spec in plan.discovery.series}
    for entry in known:
        failure = {} if entry.outcome.failure is None else {"failure": entry.outcome.failure}
        of = {"source": sources.get(entry.outcome.name, entry.outcome.name), "inputs": entry.inputs}
        records[entry.outcome.name] = of | entry.outcome.facts | failure
    run = Run(tuple(outcomes), plan.out / RECORD, stages)
    seconds = (datetime.now(UTC) - started).total_seconds()
    record = {
        "program": work.program,
        "record_version": RECORD_VERSION,
        "versions": found,
        "device": plan.device.description,
        "processor": processor(),
        "parameters": plan.options.parameters(),
        "inputs": [str(path) for path in plan.inputs],
        **files,
        "checksum": "xxh3-128",
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
    """Process every series of a plan in this process; `files` are the checksums of :meth:`Work.files`.

    Raises
    ------
    DeviceLostError
        The device that was asked for stopped working; what was finished stays, and ``--resume`` goes on from it.
    """
    series, lost = plan.discovery.series, None
    how: Any = {"resume": resume, "stop_at_defects": stop_at_defects}
    shared = Shared(plan, work, State(plan.out), files, versions(), resources, **how)
    entries: list[Entry[ResultT]] = []
    begun: dict[int, StackSteps[ResultT]] = {}

    def told(number: int) -> Callable[[Outcome[ResultT]], Outcome[ResultT]] | None:
        return None if finished is None else partial(finished, number)

    finishing = max(2, min(_FINISHED_AT_ONCE, worker_count()))
    with (
        _handing_over_soon(on_device=plan.device.xp is not np),
        closing(resources.prefetch),
        _abandoning(begun),
        Finisher[Known[ResultT]](finishing, min(2 * finishing, _FINISHED_AT_ONCE)) as finisher,
    ):
        for number, spec in enumerate(series):  # which may wait for more to arrive
            for place in range(number, min(number + 1 + _AHEAD, len(series))):
                if place not in begun:
                    begun[place] = StackSteps(shared, series[place], told(place))
                    begun[place].ahead()
            if number + 1 in begun and not begun[number + 1].is_begun:
                announce_files(series[number + 1].paths)
            try:
                entries.append(begun.pop(number).begin(finisher, watcher))
            except DeviceLostError as error:
                _abandon(begun)
                if plan.device.is_asked_for:
                    lost = error
                    break
                shared = shared.on_cpu(f"Computed by the CPU: {error}.")
                entries.append(StackSteps(shared, spec, told(number)).begin(finisher, watcher))
            for entry in entries[-2:]:
                if isinstance(entry, Later):
                    entry.raise_error()
        with resources.stages.waiting("finish"):
            known = [outcome_of(entry) for entry in entries]
    if lost is not None:
        done = sum(one.outcome.failure is None for one in known)
        again = "the same command with --resume computes the others"
        raise DeviceLostError(f"{lost}: {done} of {len(series)} stacks are finished, {again}") from lost
    return known


@contextmanager
def _handing_over_soon(*, on_device: bool) -> Iterator[None]:
    """Let threads wait less for Python's lock where one of them starts the work of a device, of which it is all."""
    if not on_device:
        yield
        return
    # It is the process's own: of several runs at once the first one changes it, and the last one puts it back.
    with _HANDING_OVER:
        _BEFORE.append(_BEFORE[0] if _BEFORE else sys.getswitchinterval())
        sys.setswitchinterval(_SECONDS_TO_HAND_OVER)
    try:
        yield
    finally:
        with _HANDING_OVER:
            seconds = _BEFORE.pop()
            if not _BEFORE:
                sys.setswitchinterval(seconds)


@contextmanager
def _abandoning(begun: dict[int, StackSteps[ResultT]]) -> Iterator[None]:
    """Give up, at the end, what was read ahead and not computed."""
    try:
        yield
    finally:
        _abandon(begun)


def _abandon(begun: dict[int, StackSteps[ResultT]]) -> None:
    while begun:
        begun.popitem()[1].abandon()


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
    for path in paths[:_MAX_ANNOUNCED]:
        announce(path, _BYTES_ANNOUNCED // min(len(paths), _MAX_ANNOUNCED))


def explain_stacks(plan: Plan[Options], work: Work[ResultT]) -> list[tuple[str, Decision | str]]:
    """Name of every stack that would be processed, with what decided for it, or why it would fail."""
    explained: list[tuple[str, Decision | str]] = []
    for spec in plan.discovery.series:
        try:
            explained.append((spec.name, work.decide(spec)))
        except XcorrError as error:
            explained.append((spec.name, str(error)))
    return explained
