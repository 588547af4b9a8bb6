"""A run of ``xcorr align``: every series found is aligned, and a report shows them all."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from xcorr_app.batch.align.by_motion import align_by_motion
from xcorr_app.batch.align.by_patches import ENGINE as PATCHES_ENGINE
from xcorr_app.batch.align.by_patches import FILES, align_by_patches
from xcorr_app.batch.align.frames import SourceFrames, begin_ahead, choose_axis
from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.batch.align.record import keep, restore
from xcorr_app.batch.align.stack import align_stack, scan_reference
from xcorr_app.batch.decisions import decide_align
from xcorr_app.batch.stack_work import StackWork
from xcorr_app.correlation.engines import choose_engine
from xcorr_app.decision import Decision
from xcorr_app.gpu.runtime.select import Device, select_device
from xcorr_app.io import SeriesSpec, atomic_write_text
from xcorr_app.io.meter import timed
from xcorr_app.io.outputs import ENDINGS
from xcorr_app.pipeline.environment import own_version, processor, versions
from xcorr_app.pipeline.outcome import Outcome, Run
from xcorr_app.pipeline.resources import Resources, StackResources
from xcorr_app.pipeline.stages import Stages
from xcorr_app.pipeline.state import REPORT, begun_folder
from xcorr_app.pipeline.work import Finished, Plan
from xcorr_app.registration import quality
from xcorr_app.registration.motion.models import PATCHES, is_more_than_a_shift
from xcorr_app.registration.one_blas_thread import one_blas_thread
from xcorr_app.report.html import StackView, load_template, render_report, stack_view
from xcorr_app.report.page_budget import has_own_pages, room_for
from xcorr_app.report.records import RunReport, StackReport, StageReport
from xcorr_app.report.summary import summarise


@dataclass(frozen=True)
class AlignResult:
    """What a run did."""

    run: Run[StackReport]
    report: RunReport
    report_path: Path | None
    """None where no report was asked for."""


class Align(StackWork[AlignOptions]):
    """Aligns stacks; once it has run, `result` says what came of it."""

    program = "xcorr align"
    less_memory = "measure a part with --roi, or use a machine with more"
    result: AlignResult

    @classmethod
    def device(cls, options: AlignOptions) -> Device:
        """Choose the device, and refuse an engine that cannot run there."""
        device = select_device(options.device)
        if not options.explain_for:
            choose_engine(options.settings.engine, device.xp, kernel_options=options.settings.kernel_options)
        return device

    @classmethod
    def check(cls, plan: Plan[AlignOptions]) -> Plan[AlignOptions]:
        """Refuse a reference that cannot be used."""
        if isinstance(plan.options.reference, Path):
            scan_reference(plan.options)
        return plan

    @one_blas_thread()
    def run(self, *, resources: Resources | None = None, **how: Any) -> Run[StackReport]:
        """Align every series and write results, report and record.

        What the report shows of a stack is drawn as soon as that is finished, while the next one is computed. With
        ``--timings`` it shows as well what the stages of the run took, which is never the same again.
        """
        plan, resources = self.plan, resources or Resources()
        path = None if plan.options.report == "none" else plan.out / REPORT
        reports: list[RunReport] = []
        views: dict[int, StackView] = {}
        if path is not None:
            threading.Thread(target=load_template, name="xcorr-template", daemon=True).start()

        def write_report(outcomes: Sequence[Outcome[StackReport]]) -> None:
            stacks = tuple(_shown(outcome, plan.options) for outcome in outcomes)
            stages = _stages(resources.stages) if plan.options.timings else ()
            reports.append(replace(_report(plan, outcomes, stacks, _title(plan)), stages=stages))
            if path is None:
                # That of an earlier run would show something else.
                (plan.out / REPORT).unlink(missing_ok=True)
            else:
                atomic_write_text(path, render_report(reports[0], views))

        number_of_stacks = len(plan.discovery.series) + len(plan.discovery.failures)
        room = room_for(number_of_stacks)
        # What a quick report leaves out is in the tables of shifts.
        apart = plan.options.report == "full" and has_own_pages(number_of_stacks)

        def drawn(number: int, outcome: Outcome[StackReport]) -> Outcome[StackReport]:
            """Draw a stack, of which no more than that is kept: pictures of all together would fill the memory."""
            shown = _shown(outcome, plan.options)
            has_page = path is not None and apart and outcome.result is not None
            if path is not None:
                with timed(resources.stages.meter, "draw"):
                    page = f"{quote(os.fsencode(outcome.name))}/{REPORT}" if has_page else ""
                    views[number] = stack_view(number + 1, shown, room, page)
            if has_page:
                with timed(resources.stages.meter, "draw"):
                    alone = render_report(_report(plan, [outcome], (shown,), outcome.name))
                atomic_write_text(plan.out / outcome.name / REPORT, alone)
            elif outcome.result is not None:
                (plan.out / outcome.name / REPORT).unlink(missing_ok=True)
            if outcome.result is None:
                return outcome
            return replace(outcome, result=replace(outcome.result, pictures=None))

        run = super().run(report=write_report, resources=resources, finished=drawn, **how)
        self.result = AlignResult(run, reports[0], path)
        return run

    def outputs(self, name: str) -> list[Path]:
        """See `Work`."""
        folder = self.plan.out / name
        stacks = [f"{name}_aligned{ending}" for ending in ENDINGS.values()]
        files = [folder / file for file in ("shifts.csv", "motion.csv", *FILES, REPORT, *stacks)]
        return [*files, begun_folder(self.plan.out, name)]

    def decide(self, spec: SeriesSpec) -> Decision:
        """See `Work`."""
        options, xp = self.options, self.plan.device.xp
        if options.motion == PATCHES:
            cut = f"{options.patches.patch} x {options.patches.patch} pixels"
            why = f"from the shift of each frame, patches of {cut} are matched, and one smooth field is fitted to all"
            return Decision(PATCHES_ENGINE, reason=why)
        if is_more_than_a_shift(options.motion):
            why = "frames that turn are found by the Fourier-Mellin transform and refined by Gauss-Newton"
            return Decision("gauss-newton", reason=why)
        with spec.open() as source:
            frames = SourceFrames(source, choose_axis(source, options.axis), options.first_channel, xp)
            return decide_align(frames, options)

    def ahead(self, spec: SeriesSpec, resources: StackResources) -> None:
        """See `Work`."""
        begin_ahead(spec, self.options, self.plan.device.xp, resources)

    def measured_frames(self, spec: SeriesSpec) -> tuple[int, int] | None:
        """Number of frames and pixels of one, where workers of a cluster can share the passes over them."""
        options = self.options
        with spec.open() as source:
            frames = SourceFrames(source, choose_axis(source, options.axis), options.first_channel, np)
            return frames.count, frames.shape[0] * frames.shape[1]

    def places_planes(self) -> bool:
        """Whether planes are written, once they are measured."""
        return self.options.apply

    def walks_on(self) -> bool:
        """Whether planes are walked over once they are measured: to be written, or drawn."""
        return self.options.apply or self.options.report == "full"

    def process(self, spec: SeriesSpec, resources: StackResources) -> Finished[StackReport]:
        """See `Work`."""
        plan = self.plan
        align = align_by_motion if is_more_than_a_shift(plan.options.motion) else align_stack
        if plan.options.motion == PATCHES:
            align = align_by_patches
        done = align(spec, plan.options, plan.device, plan.out / spec.name, resources)
        return Finished(done.facts, done.outputs, done.report, lambda: keep(done.report, plan.out))

    def restored(self, name: str, record: dict[str, Any]) -> StackReport | None:
        """See `Work`."""
        return restore(name, record, self.plan.out)

    def is_flagged(self, finished: Finished[StackReport]) -> bool:
        """See `Work`."""
        rows = finished.result.rows
        return any(quality.FAILS_THE_RUN & set(row.flags) for row in rows) or summarise(finished.result).is_no_better


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


def _report(
    plan: Plan[AlignOptions], outcomes: Sequence[Outcome[StackReport]], stacks: tuple[StackReport, ...], title: str
) -> RunReport:
    # The day alone, so that a run resumed on the same day gives the same bytes.
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    return RunReport(title, _facts(plan, _engines(plan, outcomes)), stacks, date)


def _stages(stages: Stages) -> tuple[StageReport, ...]:
    """What the stages took so far, the one that set the pace first."""
    times = sorted(stages.times(), key=lambda stage: -stage.held_up)
    return tuple(StageReport(stage.name, stage.busy, stage.held_up, stage.rate) for stage in times)


def _title(plan: Plan[AlignOptions]) -> str:
    names = [path.name or str(path) for path in plan.inputs]
    return f"Alignment of {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _engines(plan: Plan[AlignOptions], outcomes: Sequence[Outcome[StackReport]]) -> str:
    """Names of the engines that measured the stacks; what was asked for where none did."""
    ran = dict.fromkeys(outcome.facts["engine"] for outcome in outcomes if "engine" in outcome.facts)
    return ", ".join(ran) or plan.options.settings.engine


def _facts(plan: Plan[AlignOptions], engines: str) -> tuple[tuple[str, str], ...]:
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
    on_cpu = "32 frames a stack" if plan.device.xp is np else "every frame"
    known = {"auto": on_cpu, "all": "every frame", "none": "not checked"}
    checked = known.get(str(options.verify), f"{options.verify} frames a stack")
    return (
        ("Program", f"xcorr {own_version()}"),
        ("Input", ", ".join(str(path) for path in plan.inputs)),
        ("Device", f"{plan.device.description}; {processor()}"),
        ("Engine", engines),
        ("Measured by", "; ".join([measured, *extras])),
        ("Checked against the float64 FFT", checked),
        ("Output", written),
        ("Versions", ", ".join(f"{name} {version}" for name, version in versions().items() if name != "xcorr-app")),
    )
