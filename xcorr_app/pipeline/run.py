"""A run of one command over many stacks: failures apart, resumable, and one record of it all.

Stacks are computed one after the other by the thread of the run, which alone tells a device what to do: it measures,
moves and assesses. Others read the next stacks meanwhile and bring them to the device, write what was moved, and bring
what is done to the disk, with its drawings, checksums and record.
"""

import json
import sys
from concurrent.futures import Future
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from typing import Any, Protocol

import numpy as np

from xcorr_app.errors import DeviceLostError
from xcorr_app.io import atomic_write_text
from xcorr_app.pipeline.resources import Resources
from xcorr_app.pipeline.stack_steps import Finisher, StackSteps
from xcorr_app.pipeline.stages import processor, versions
from xcorr_app.pipeline.state import RECORD, RECORD_VERSION
from xcorr_app.pipeline.work import Outcome, Run, Watcher, Work
from xcorr_app.registration.one_blas_thread import one_blas_thread
from xcorr_app.system import worker_count

_AHEAD = 2
"""Stacks that may be read while one is computed."""
_FINISHED_AT_ONCE = 8
"""Stacks that are brought to the disk, at most: each waits for it several times, and it is to have something to do."""
_SECONDS_TO_HAND_OVER, _USUAL_SECONDS = 0.0005, sys.getswitchinterval()
"""After which a thread that computes in Python lets another go on, such as the one that starts the work of a device."""


class Elsewhere(Protocol):
    """Other processes that compute the stacks of a run, such as the workers of a cluster."""

    def compute_stacks(
        self,
        work: Work[Any],
        resources: Resources,
        watcher: Watcher | None = None,
    ) -> list[Outcome]:
        """Do what the function of this name does in this process."""

    def as_record(self) -> dict[str, Any]:
        """Plain values for ``run.json``: who computed what."""


def run_stacks(work: Work[Any], *, watcher: Watcher | None = None, elsewhere: Elsewhere | None = None) -> Run:
    """Process every series that was found, the output folder being ready, then write the report and ``run.json``.

    One series that fails does not stop the others. Neither does one that runs into a defect of the program, unless
    ``--debug`` lets the exception out. With `elsewhere`, other processes compute the stacks.
    """
    started, resources, discovery = datetime.now(UTC), work.options.resources(), work.discovery
    stages, found = resources.stages, versions()
    work.state.begin(work.asked)
    files = work.checksums
    compute = compute_stacks if elsewhere is None else elsewhere.compute_stacks
    computed = compute(work, resources, watcher)
    unused = [Outcome(each.path.name or str(each.path), failure=each.message) for each in discovery.failures]
    with stages.waiting("report"):
        report = work.report([*computed, *unused], stages)
    run = Run((*computed, *unused), work.out / RECORD, stages, report)
    sources = {spec.name: spec.source for spec in discovery.series}
    records = {
        each.name: {"source": sources.get(each.name, each.name), "inputs": each.inputs}
        | each.facts
        | ({} if each.failure is None else {"failure": each.failure})
        for each in computed
    }
    record = {
        "program": work.program,
        "record_version": RECORD_VERSION,
        "versions": found,
        "device": work.device.description,
        "processor": processor(),
        "parameters": work.parameters,
        "inputs": [str(path) for path in work.inputs],
        **files,
        "checksum": "xxh3-128",
        "layout": discovery.layout,
        "started": started.isoformat(timespec="seconds"),
        "seconds": round((datetime.now(UTC) - started).total_seconds(), 3),
        "timings": stages.as_record(),
        "resumed": list(run.resumed),
        "failed": run.failed,
        "failures": {str(failure.path): failure.message for failure in discovery.failures},
    }
    if elsewhere is not None:
        record["cluster"] = elsewhere.as_record()
    # Each stack on a line of its own: Python's encoder in C, which knows no indentation, takes a tenth of the time.
    stacks = ",\n".join(f"    {json.dumps(name)}: {json.dumps(known)}" for name, known in records.items())
    atomic_write_text(run.record, f'{json.dumps(record, indent=2)[:-2]},\n  "stacks": {{\n{stacks}\n  }}\n}}\n')
    return run


@one_blas_thread()
def compute_stacks(
    work: Work[Any],
    resources: Resources,
    watcher: Watcher | None = None,
) -> list[Outcome]:
    """Process every series that was found, in this process.

    Raises
    ------
    DeviceLostError
        The device that was asked for stopped working; what was finished stays, and ``--resume`` goes on from it.
    """
    series, lost = work.discovery.series, None
    outcomes: list[Future[Outcome]] = []
    opened: dict[int, StackSteps] = {}
    finishing = max(2, min(_FINISHED_AT_ONCE, worker_count()))
    with (
        closing(resources),
        ExitStack() as held,
        Finisher(finishing, min(2 * finishing, _FINISHED_AT_ONCE)) as finisher,
    ):
        held.callback(_abandon, opened)  # what was read ahead and not computed
        if work.device.xp is not np:
            sys.setswitchinterval(_SECONDS_TO_HAND_OVER)
            held.callback(sys.setswitchinterval, _USUAL_SECONDS)
        for number, spec in enumerate(series):  # which may wait for more to arrive
            for place in range(number, min(number + 1 + _AHEAD, len(series))):
                if place not in opened:
                    opened[place] = StackSteps(work, resources, series[place])
                    opened[place].ahead()
            try:
                outcomes.append(opened.pop(number).begin(finisher, watcher))
            except DeviceLostError as error:
                _abandon(opened)
                if work.device.is_asked_for:
                    lost = error
                    break
                work = work.on_cpu(f"Computed by the CPU: {error}.")
                outcomes.append(StackSteps(work, resources, spec).begin(finisher, watcher))
            for outcome in outcomes[-2:]:
                if outcome.done():
                    outcome.result()
        with resources.stages.waiting("finish"):
            known = [outcome.result() for outcome in outcomes]
    if lost is not None:
        done = sum(outcome.failure is None for outcome in known)
        again = "the same command with --resume computes the others"
        raise DeviceLostError(f"{lost}: {done} of {len(series)} stacks are finished, {again}") from lost
    return known


def _abandon(opened: dict[int, StackSteps]) -> None:
    while opened:
        opened.popitem()[1].abandon()
