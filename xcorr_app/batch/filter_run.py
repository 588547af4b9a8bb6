"""A whole run of ``xcorr filter``: every series found, one after the other, and the record over all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from xcorr_app.batch.environment import processor, versions
from xcorr_app.batch.filter_device import filter_device
from xcorr_app.batch.filter_options import FilterOptions
from xcorr_app.batch.filter_stack import filter_stack
from xcorr_app.batch.output import check_output, prepare_output
from xcorr_app.batch.reason import reason_of
from xcorr_app.batch.state import State, checksums, fingerprint
from xcorr_app.errors import OutputError, XcorrError
from xcorr_app.gpu.runtime.select import Device
from xcorr_app.io import Discovery, SeriesSpec, atomic_write_text, discover
from xcorr_app.registration.passes import Progress

PROGRAM = "xcorr filter"
_RECORD = "run.json"

Watcher = Callable[[str], Progress | None]
"""Called with a stack's name when it begins; returns what is told of its progress."""


@dataclass(frozen=True)
class FilterPlan:
    """What a run would do: series, device, output folder."""

    discovery: Discovery
    device: Device
    inputs: tuple[Path, ...]
    out: Path
    options: FilterOptions


@dataclass(frozen=True)
class FilterOutcome:
    """What became of one stack, or of one file that is in none."""

    name: str
    facts: dict[str, Any]
    """Timings and counts for ``run.json``; empty where `failure` is set."""
    failure: str | None = None
    resumed: bool = False
    """An earlier run had finished it."""

    @property
    def failed(self) -> bool:
        """The stack, or a plane of it, could not be filtered."""
        return self.failure is not None or bool(self.facts["unreadable"])


@dataclass(frozen=True)
class FilterResult:
    """What a run did."""

    outcomes: tuple[FilterOutcome, ...]
    record: Path

    @property
    def failed(self) -> bool:
        """Something failed."""
        return any(outcome.failed for outcome in self.outcomes)


def plan_filter(
    inputs: list[Path], out: Path, options: FilterOptions, *, resume: bool = False, overwrite: bool = False
) -> FilterPlan:
    """Find the series, choose the device and check the output folder; nothing is written.

    Raises
    ------
    InputError, OutputError, ArgumentError, DeviceError
        If there is nothing to do, or it cannot be done as asked.
    """
    device = filter_device(options)
    discovery = discover(inputs, options.layout, options.limits)
    check_output(out, discovery, inputs, resume=resume, overwrite=overwrite)
    if resume:
        _check_record(out)
    return FilterPlan(discovery, device, tuple(inputs), out, options)


def prepare_filter(plan: FilterPlan, *, resume: bool = False, overwrite: bool = False) -> None:
    """Make the output folder of a plan ready.

    Raises
    ------
    OutputError
        If it cannot be made or written, or must not be used.
    """
    prepare_output(plan.out, plan.discovery, list(plan.inputs), resume=resume, overwrite=overwrite)


def run_filter(
    plan: FilterPlan, *, resume: bool = False, stop_at_defects: bool = False, watcher: Watcher | None = None
) -> FilterResult:
    """Filter every series of a prepared plan and write results and record.

    One series that fails does not stop the others. Neither does one that runs into a defect of the program, unless
    `stop_at_defects` lets the exception out.

    Raises
    ------
    OutputError
        If the record cannot be written.
    """
    options = plan.options
    started = datetime.now(UTC)
    state, found = State(plan.out), versions()
    taps_file = {} if options.choice.file is None else checksums((options.choice.file,))
    decisive = {"program": PROGRAM} | options.parameters()
    outcomes: list[FilterOutcome] = []
    records: dict[str, Any] = {}
    for spec in plan.discovery.series:
        inputs = checksums(spec.paths)
        mark = fingerprint(decisive, inputs | taps_file, found | {"device": plan.device.description})
        done = state.load_record(spec.name, mark) if resume else None
        if done is not None:
            outcome = FilterOutcome(spec.name, done["facts"], resumed=True)
        else:
            try:
                outcome = FilterOutcome(spec.name, _filter_anew(plan, spec, state, mark, watcher))
            except Exception as error:
                if stop_at_defects and not isinstance(error, XcorrError | MemoryError):
                    raise
                outcome = FilterOutcome(spec.name, {}, reason_of(error, "use a machine with more"))
        outcomes.append(outcome)
        failure = {} if outcome.failure is None else {"failure": outcome.failure}
        records[spec.name] = {"inputs": inputs} | outcome.facts | failure
    outcomes += [
        FilterOutcome(failure.path.name or str(failure.path), {}, failure.message)
        for failure in plan.discovery.failures
    ]

    result = FilterResult(tuple(outcomes), plan.out / _RECORD)
    record = {
        "program": PROGRAM,
        "versions": found,
        "device": plan.device.description,
        "processor": processor(),
        "parameters": options.parameters(),
        "inputs": [str(path) for path in plan.inputs],
        "taps_file": taps_file,
        "layout": plan.discovery.layout,
        "started": started.isoformat(timespec="seconds"),
        "seconds": round((datetime.now(UTC) - started).total_seconds(), 3),
        "resumed": [outcome.name for outcome in outcomes if outcome.resumed],
        "failed": result.failed,
        "failures": {str(failure.path): failure.message for failure in plan.discovery.failures},
        "stacks": records,
    }
    atomic_write_text(result.record, json.dumps(record, indent=2) + "\n")
    return result


def _filter_anew(
    plan: FilterPlan, spec: SeriesSpec, state: State, mark: str, watcher: Watcher | None
) -> dict[str, Any]:
    """Filter a stack and record it; what an earlier run left of it goes first, lest old passes for new."""
    target = plan.out / spec.name / f"{spec.name}_filtered.tif"
    state.discard(spec.name, [target])
    progress = watcher(spec.name) if watcher is not None else None
    facts = filter_stack(spec, plan.options, plan.device, target, progress)
    state.save_record(spec.name, mark, [target], facts)
    return facts


def _check_record(out: Path) -> None:
    """Refuse to go on in a folder that another command filled: its results would lie among ours."""
    try:
        program = json.loads((out / _RECORD).read_text())["program"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    if program != PROGRAM:
        raise OutputError(f"{out}: holds results of `{program}`, which --resume cannot go on with; choose another -o")
