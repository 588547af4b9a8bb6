"""A run of ``xcorr align``: every series found is aligned, and a report shows them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from xcorr_app.batch.align.frames import SourceFrames, choose_axis
from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.batch.align.record import keep, restore
from xcorr_app.batch.align.stack import align_stack, scan_reference
from xcorr_app.batch.decisions import decide_align
from xcorr_app.correlation.engines import choose_engine
from xcorr_app.decision import Decision
from xcorr_app.gpu.runtime.select import OF_WORKERS, Device, select_device
from xcorr_app.io import SeriesSpec, atomic_write_text, discover
from xcorr_app.pipeline.environment import own_version, processor
from xcorr_app.pipeline.output import REPORT, check_output
from xcorr_app.pipeline.resources import Resources, StackResources
from xcorr_app.pipeline.run import Elsewhere, Finished, Outcome, Plan, Run, Watcher, explain_stacks, run_stacks
from xcorr_app.registration import quality
from xcorr_app.report.drawer import Drawer
from xcorr_app.report.html import load_template, render_report
from xcorr_app.report.records import RunReport, StackReport
from xcorr_app.report.summary import summarise

PROGRAM = "xcorr align"


@dataclass(frozen=True)
class AlignResult:
    """What a run did."""

    run: Run[StackReport]
    report: RunReport
    report_path: Path | None
    """None where no report was asked for."""


def plan_align(
    inputs: list[Path],
    out: Path,
    options: AlignOptions,
    *,
    resume: bool = False,
    overwrite: bool = False,
    elsewhere: bool = False,
) -> Plan[AlignOptions]:
    """Find the series, choose the device and check the output folder; nothing is written.

    With `elsewhere`, workers choose their devices, by `align_device`.
    """
    discovery = discover(inputs, options.layout, options.limits, channel=options.channel)
    if isinstance(options.reference, Path):
        scan_reference(options)
    check_output(out, discovery, inputs, PROGRAM, resume=resume, overwrite=overwrite)
    device = OF_WORKERS if elsewhere else align_device(options)
    return Plan(discovery, device, tuple(inputs), out, options)


def align_device(options: AlignOptions) -> Device:
    """Choose the device, and refuse an engine that cannot run there."""
    device = select_device(options.device)
    choose_engine(options.settings.engine, device.xp, kernel_options=options.settings.kernel_options)
    return device


def run_align(
    plan: Plan[AlignOptions],
    *,
    resume: bool = False,
    stop_at_defects: bool = False,
    watcher: Watcher | None = None,
    resources: Resources | None = None,
    drawer: Drawer | None = None,
    elsewhere: Elsewhere | None = None,
) -> AlignResult:
    """Align every series of a plan whose output folder is ready, and write results, report and record.

    A `drawer` draws what the report shows of a stack as soon as it is known.
    """
    path = None if plan.options.report == "none" else plan.out / REPORT
    reports: list[RunReport] = []

    def write_report(outcomes: Sequence[Outcome[StackReport]], versions: dict[str, str]) -> None:
        stacks = tuple(_shown(outcome, plan.options) for outcome in outcomes)
        # The day alone, so that a run resumed on the same day gives the same bytes.
        date = datetime.now(UTC).strftime("%Y-%m-%d")
        reports.append(RunReport(_title(plan), _facts(plan, _engines(plan, outcomes), versions), stacks, date))
        if path is None:
            # That of an earlier run would show something else.
            (plan.out / REPORT).unlink(missing_ok=True)
        else:
            if drawer is not None:
                load_template()
            page = render_report(reports[0]) if drawer is None else render_report(reports[0], drawer.views())
            atomic_write_text(path, page)

    def draw(number: int, outcome: Outcome[StackReport]) -> None:
        if drawer is not None:
            drawer.submit(number, _shown(outcome, plan.options))

    run = run_stacks(
        plan,
        _Align(plan),
        resume=resume,
        stop_at_defects=stop_at_defects,
        watcher=watcher,
        report=write_report,
        resources=resources,
        finished=draw,
        elsewhere=elsewhere,
    )
    return AlignResult(run, reports[0], path)


def explain_align(plan: Plan[AlignOptions]) -> list[tuple[str, Decision | str]]:
    """Say for every stack what would measure it, and why; nothing is measured."""
    return explain_stacks(plan, _Align(plan))


class _Align:
    """Aligns one stack, for the run loop."""

    program = PROGRAM
    less_memory = "measure a part with --roi, or use a machine with more"

    def __init__(self, plan: Plan[AlignOptions]) -> None:
        self._plan = plan

    def files(self) -> dict[str, tuple[Path, ...]]:
        reference = self._plan.options.reference
        return {"reference_file": (reference,) if isinstance(reference, Path) else ()}

    def outputs(self, name: str) -> list[Path]:
        return [self._plan.out / name / "shifts.csv", self._plan.out / name / f"{name}_aligned.tif"]

    def decide(self, spec: SeriesSpec) -> Decision:
        options, xp = self._plan.options, self._plan.device.xp
        with spec.open() as source:
            frames = SourceFrames(source, choose_axis(source, options.axis), options.align_channel, xp)
            return decide_align(frames, options)

    def process(self, spec: SeriesSpec, resources: StackResources) -> Finished[StackReport]:
        plan = self._plan
        report, outputs, facts = align_stack(spec, plan.options, plan.device, plan.out / spec.name, resources)
        return Finished(facts, outputs, report, lambda: keep(report, plan.out))

    def restored(self, name: str, record: dict[str, Any]) -> StackReport | None:
        return restore(name, record, self._plan.out)

    def is_flagged(self, finished: Finished[StackReport]) -> bool:
        rows = finished.result.rows
        return any(quality.FAILED & set(row.flags) for row in rows) or summarise(finished.result).is_untrusted


def _shown(outcome: Outcome[StackReport], options: AlignOptions) -> StackReport:
    """What the report shows of a stack, failed ones included."""
    if outcome.result is not None:
        return outcome.result
    return StackReport(
        name=outcome.name,
        description="",
        rows=(),
        pictures=None,
        reference="",
        max_shift=(0.0, 0.0),
        pixel_size=None,
        unit=None,
        tolerance=options.settings.tolerance,
        notes=(),
        failure=outcome.failure,
    )


def _title(plan: Plan[AlignOptions]) -> str:
    names = [path.name or str(path) for path in plan.inputs]
    return f"Alignment of {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _engines(plan: Plan[AlignOptions], outcomes: Sequence[Outcome[StackReport]]) -> str:
    """Names of the engines that measured the stacks; what was asked for where none did."""
    ran = dict.fromkeys(outcome.facts["engine"] for outcome in outcomes if "engine" in outcome.facts)
    return ", ".join(ran) or plan.options.settings.engine


def _facts(plan: Plan[AlignOptions], engines: str, found: dict[str, str]) -> tuple[tuple[str, str], ...]:
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
