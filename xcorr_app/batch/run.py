"""A whole run: every series found, one after the other, and the report over all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from xcorr_app.batch.environment import own_version, processor, versions
from xcorr_app.batch.options import AlignOptions
from xcorr_app.batch.output import check_output, prepare_output
from xcorr_app.batch.reason import reason_of
from xcorr_app.batch.stack import AlignedStack, align_stack
from xcorr_app.batch.state import State, checksums, fingerprint
from xcorr_app.correlation.engines import choose_engine
from xcorr_app.errors import XcorrError
from xcorr_app.gpu.runtime.select import Device, select_device
from xcorr_app.io import Discovery, SeriesSpec, atomic_write_text, discover, scan_file
from xcorr_app.registration import quality
from xcorr_app.registration.passes import Progress
from xcorr_app.report.html import render_report
from xcorr_app.report.records import RunReport, StackReport

Watcher = Callable[[str], Progress | None]
"""Called with a stack's name when it begins; returns what is told of its progress."""


@dataclass(frozen=True)
class Plan:
    """What a run would do: series, device, output folder."""

    discovery: Discovery
    device: Device
    inputs: tuple[Path, ...]
    out: Path
    options: AlignOptions


@dataclass(frozen=True)
class RunResult:
    """What a run did."""

    report: RunReport
    failed: bool
    """Something failed, or a frame is flagged as failed."""
    resumed: tuple[str, ...]
    """Stacks that an earlier run had finished."""
    report_path: Path


def plan_run(
    inputs: list[Path], out: Path, options: AlignOptions, *, resume: bool = False, overwrite: bool = False
) -> Plan:
    """Find the series, choose the device and check the output folder; nothing is written.

    Raises
    ------
    InputError, OutputError, DeviceError, ArgumentError
        If there is nothing to do, or it cannot be done as asked.
    """
    discovery = discover(inputs, options.layout, options.limits)
    if isinstance(options.reference, Path):
        scan_file(options.reference, options.limits)
    check_output(out, discovery, inputs, resume=resume, overwrite=overwrite)
    device = select_device(options.device)
    choose_engine(options.settings.engine, device.xp, kernel_options=options.settings.kernel_options)
    return Plan(discovery, device, tuple(inputs), out, options)


def prepare_run(plan: Plan, *, resume: bool = False, overwrite: bool = False) -> None:
    """Make the output folder of a plan ready.

    Raises
    ------
    OutputError
        If it cannot be made or written, or must not be used.
    """
    prepare_output(plan.out, plan.discovery, list(plan.inputs), resume=resume, overwrite=overwrite)


def run_align(
    plan: Plan,
    *,
    resume: bool = False,
    stop_at_defects: bool = False,
    watcher: Watcher | None = None,
) -> RunResult:
    """Align every series of a prepared plan and write results, report and record.

    One series that fails does not stop the others: it is in the table, in the report and in `failed`. So is one that
    runs into a defect of the program, unless `stop_at_defects` lets the exception out.

    Raises
    ------
    OutputError
        If the report or the record cannot be written.
    """
    out, options = plan.out, plan.options
    started = datetime.now(UTC)
    state, found = State(out), versions()
    reference = checksums((options.reference,)) if isinstance(options.reference, Path) else {}
    stacks: list[StackReport] = []
    records: dict[str, Any] = {}
    resumed = []
    for spec in plan.discovery.series:
        inputs = checksums(spec.paths)
        mark = fingerprint(options.parameters(), inputs | reference, found | {"device": plan.device.description})
        done = state.load(spec.name, mark) if resume else None
        if done is not None:
            resumed.append(spec.name)
            stacks.append(done.report)
            records[spec.name] = {"inputs": inputs} | done.facts
            continue
        try:
            aligned = _align_anew(plan, spec, state, mark, watcher)
        except Exception as error:
            if stop_at_defects and not isinstance(error, XcorrError | MemoryError):
                raise
            reason = reason_of(error, "measure a part with --roi, or use a machine with more")
            stacks.append(_failure(spec.name, reason, options))
            records[spec.name] = {"inputs": inputs, "failure": reason}
            continue
        stacks.append(aligned.report)
        records[spec.name] = {"inputs": inputs} | aligned.facts
    stacks += [
        _failure(failure.path.name or str(failure.path), failure.message, options)
        for failure in plan.discovery.failures
    ]

    report = RunReport(_title(plan), _facts(plan, _engines(plan, records), found), tuple(stacks))
    atomic_write_text(out / "report.html", render_report(report))
    failed = any(_has_failed(stack) for stack in stacks)
    record = {
        "program": "xcorr align",
        "versions": found,
        "device": plan.device.description,
        "processor": processor(),
        "parameters": options.parameters(),
        "inputs": [str(path) for path in plan.inputs],
        "reference_file": reference,
        "layout": plan.discovery.layout,
        "started": started.isoformat(timespec="seconds"),
        "seconds": round((datetime.now(UTC) - started).total_seconds(), 3),
        "resumed": resumed,
        "failed": failed,
        "failures": {str(failure.path): failure.message for failure in plan.discovery.failures},
        "stacks": records,
    }
    atomic_write_text(out / "run.json", json.dumps(record, indent=2) + "\n")
    return RunResult(report, failed, tuple(resumed), out / "report.html")


def _align_anew(plan: Plan, spec: SeriesSpec, state: State, mark: str, watcher: Watcher | None) -> AlignedStack:
    """Align a stack and record it; what an earlier run left of it goes first, lest old and new lie side by side."""
    folder = plan.out / spec.name
    state.discard(spec.name, [folder / "shifts.csv", folder / f"{spec.name}_aligned.tif"])
    progress = watcher(spec.name) if watcher is not None else None
    aligned = align_stack(spec, plan.options, plan.device, folder, progress)
    state.save(aligned.report, mark, aligned.outputs, aligned.facts)
    return aligned


def _has_failed(stack: StackReport) -> bool:
    return stack.failure is not None or any(quality.FAILED & set(row.flags) for row in stack.rows)


def _failure(name: str, reason: str, options: AlignOptions) -> StackReport:
    return StackReport(
        name=name,
        description="",
        rows=(),
        pictures=None,
        reference="",
        max_shift=(0.0, 0.0),
        pixel_size=None,
        unit=None,
        tolerance=options.settings.tolerance,
        notes=(),
        left_in_place=frozenset(),
        failure=reason,
    )


def _title(plan: Plan) -> str:
    names = [path.name or str(path) for path in plan.inputs]
    return f"Alignment of {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _engines(plan: Plan, records: dict[str, Any]) -> str:
    """Names of the engines that measured the stacks; what was asked for where none did."""
    ran = dict.fromkeys(record["engine"] for record in records.values() if "engine" in record)
    return ", ".join(ran) or plan.options.settings.engine


def _facts(plan: Plan, engines: str, found: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """What ran on what; nothing that differs between a run and the same run resumed."""
    options, s = plan.options, plan.options.settings
    measured = f"{s.normalization}, sub-pixel {s.subpixel}" + (f" (1/{s.upsample} px)" if s.subpixel == "dft" else "")
    extras = [f"prefilter {s.prefilter}"] if s.prefilter.name else []
    if s.roi is not None:
        rows, columns = s.roi
        extras.append(f"rows {rows.start}:{rows.stop}, columns {columns.start}:{columns.stop}")
    written = (
        f"{options.interpolation} interpolation, border {options.border}"
        if options.apply
        else "measured only, not moved"
    )
    checked = {"all": "every frame", "none": "not checked"}.get(str(options.verify), f"{options.verify} frames a stack")
    return (
        ("Program", f"xcorr {own_version()}"),
        ("Input", ", ".join(str(path) for path in plan.inputs)),
        ("Device", f"{plan.device.description}; {processor()}"),
        ("Engine", engines),
        ("Measured by", "; ".join([measured, *extras])),
        ("Checked against the float64 FFT", checked),
        ("Output", written),
        ("Versions", ", ".join(f"{name} {version}" for name, version in found.items() if name != "xcorr-app")),
    )
