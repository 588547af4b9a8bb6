"""What ``xcorr align`` does: every series found is aligned and drawn, and a page shows them all."""

import os
import shlex
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

from xcorr_app.batch.align.frames import SourceFrames, frames_of, scan_reference
from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.batch.align.stack import align_stack
from xcorr_app.correlation.engines import choose_engine, limits_of
from xcorr_app.decision import Decision
from xcorr_app.errors import InputError
from xcorr_app.gpu.runtime.select import Device, select_device
from xcorr_app.io import SeriesSpec, atomic_write_text
from xcorr_app.io.outputs import ENDINGS
from xcorr_app.io.source import timed
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.pipeline.stages import Stages, StageTime, own_version, processor, versions
from xcorr_app.pipeline.state import REPORT, RESULTS, State
from xcorr_app.pipeline.work import Outcome, StackResult, Work
from xcorr_app.registration import quality
from xcorr_app.registration.choice import decide_registration
from xcorr_app.registration.results.frame_table import parse_shifts_csv
from xcorr_app.registration.solver.basis import PATCHES, is_more_than_a_shift
from xcorr_app.registration.stack.passes import Pass
from xcorr_app.report.encoding import ALONE, MAX_SECTIONS, room_for
from xcorr_app.report.html import address, load_template, render_report, render_section
from xcorr_app.report.records import RunReport, StackReport
from xcorr_app.report.summary import summarise

SECTION = ".html"
"""Of the file beside a stack's record that holds its section of the page of all, for when the page is written."""
_OF_ONE_IMAGE = ("first", "last")
"""References by name that all frames share; a mean, say, leaves out the frame that is measured."""


class Align(Work[AlignOptions]):
    """Aligns stacks."""

    program = "xcorr align"
    less_memory = "measure a part with --roi, or use a machine with more"

    @classmethod
    def chosen_device(cls, options: AlignOptions) -> Device:
        """Choose the device, and refuse an engine that cannot run there."""
        device = select_device(options.device)
        choose_engine(options.settings.engine, device.xp, kernel_options=options.settings.kernel_options)
        return device

    def checked(self) -> Self:
        """Refuse a reference that cannot be used, and results of earlier runs that nobody named one by one."""
        if isinstance(self.options.reference, Path):
            scan_reference(self.options)
        for spec in self.discovery.series:
            file = Path(os.path.abspath(spec.paths[0]))  # noqa: PTH100 - links stay
            stack, known = file.parent, State(file.parent.parent)
            asked = known.asked() if known.knows(stack.name) else None
            if asked and asked.program == self.program and not (self._is_named(file) or self._is_named(stack)):
                raise InputError(
                    f"{stack.parent}: is an output folder of {self.program}, whose results would be aligned again; "
                    f"name what they were made of, or each stack in it by itself, as {stack}"
                )
        if self.options.report != "none":
            threading.Thread(target=load_template, args=["stack.html.j2"], name="xcorr-template", daemon=True).start()
        return self

    def _is_named(self, path: Path) -> bool:
        """Whether a user named just this, or gave its form, and no folder that holds it."""
        named = [os.path.abspath(given) for given in self.inputs]  # noqa: PTH100 - links stay
        return str(path) in named or any(map(path.match, named))

    def outputs(self, name: str) -> list[Path]:
        """See `Work`."""
        stacks = [f"{name}_aligned{ending}" for ending in ENDINGS.values()]
        return [*map((self.out / name).joinpath, (*RESULTS, *stacks)), self.state.attachment(name, SECTION)]

    def decide(self, spec: SeriesSpec) -> Decision:
        """See `Work`."""
        options = self.options
        if options.model == PATCHES:
            cut = f"{options.patches.patch} x {options.patches.patch} pixels"
            why = f"from the shift of each frame, patches of {cut} are matched, and one smooth field is fitted to all"
            return Decision(PATCHES, reason=why)
        if is_more_than_a_shift(options.model):
            why = "frames that turn are found by the Fourier-Mellin transform and refined by Gauss-Newton"
            return Decision("gauss-newton", reason=why)
        with spec.open() as source:
            frames = frames_of(source, options, self.device.xp, options.first_channel)
        # As long as no weighting of frequencies is needed.
        limits, (rows, columns) = limits_of(frames.xp), frames.shape
        together = Pass(frames.count, rows * columns, on_device=limits is not None).images_at_once
        shared = not isinstance(options.reference, str) or options.reference in _OF_ONE_IMAGE
        how = frames.shape, str(frames.dtype), together, options.settings, limits
        return decide_registration(*how, shared_reference=shared)

    def begin(self, spec: SeriesSpec, resources: StackResources, *, ahead: bool = False) -> SourceFrames | None:
        """See `Work`."""
        source, options, xp = spec.open(), self.options, self.device.xp
        return resources.begin(frames_of(source, options, xp, options.first_channel), xp, ahead=ahead)

    def process(self, spec: SeriesSpec, resources: StackResources, opened: SourceFrames) -> StackResult:
        """See `Work`."""
        return align_stack(spec, self, resources, opened)

    def restored(self, name: str, record: dict[str, Any]) -> StackReport | None:
        """See `Work`."""
        table = (self.out / name / "shifts.csv").read_text(encoding="utf-8")
        return StackReport.from_record(name, record["report"], parse_shifts_csv(table))

    def is_flagged(self, result: StackReport) -> bool:
        """See `Work`."""
        return summarise(result).is_no_better or any(quality.FAILS_THE_RUN & set(row.flags) for row in result.rows)

    def draw(self, done: StackResult, resources: StackResources) -> dict[str, Any]:
        """See `Work`: a stack's section and, of one of many, a page of its own.

        What a quick report leaves out is in the tables of shifts.
        """
        report: StackReport = done.result
        files, room, kind = {}, room_for(self.stacks), self.options.report
        has_page = kind == "full" and room is not ALONE
        with timed(resources.stages.meter, "draw"):
            shown = None if done.pictures is None else done.pictures.pictures()
            report = replace(report, files=tuple(path.name for path in done.outputs), pictures=shown)
            if kind != "none" and self.stacks <= MAX_SECTIONS:
                base = f"{address(report.name)}/"
                page = f"{base}{REPORT}" if has_page else ""
                section = render_section(report, room, page, base, is_alone=self.stacks == 1)
                files[self.state.attachment(report.name, SECTION)] = section
            if has_page:
                run = _run_report(self, [done.facts["engine"]], (report,), report.name)
                files[self.out / report.name / REPORT] = render_report(run)
        for path, text in files.items():
            resources.write_bytes(path, text.encode())
        done.outputs.extend(files)
        return {"report": report.as_record()}

    def report(self, outcomes: Sequence[Outcome], stages: Stages) -> Path | None:
        """See `Work`: with ``-v`` the page shows what the stages took, too, which is never the same again."""
        path = self.out / REPORT
        if self.options.report == "none":
            # That of an earlier run would show something else.
            path.unlink(missing_ok=True)
            return None
        ran = (outcome.facts["engine"] for outcome in outcomes if "engine" in outcome.facts)
        reports, sections = tuple(map(report_of, outcomes)), {}
        shown = sorted(stages.times(), key=lambda stage: -stage.held_up) if self.options.verbose else ()
        for outcome in outcomes:
            with suppress(FileNotFoundError):
                sections[outcome.name] = self.state.attachment(outcome.name, SECTION).read_text(encoding="utf-8")
        pages = frozenset(report.name for report in reports if (self.out / report.name / REPORT).is_file())
        run = replace(_run_report(self, ran, reports, _title(self), shown), pages=pages)
        atomic_write_text(path, render_report(run, sections))
        return path


def report_of(outcome: Outcome) -> StackReport:
    """What is shown of a stack, failed ones included."""
    return outcome.result or StackReport(outcome.name, failure=outcome.failure)


def _run_report(
    work: Work[AlignOptions],
    engines: Iterable[str],
    stacks: tuple[StackReport, ...],
    title: str,
    stages: Sequence[StageTime] = (),
) -> RunReport:
    # The day alone, so that a run resumed on the same day gives the same bytes.
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    # What was asked for, where no engine ran.
    ran = ", ".join(dict.fromkeys(engines)) or work.options.settings.engine
    # As it can be typed: a name that begins with a dash would be read as an option.
    inputs = [f"./{path}" if str(path).startswith("-") else str(path) for path in work.inputs]
    return RunReport(
        title,
        _facts(work, ran),
        stacks,
        date,
        tuple(stages),
        shlex.join(["xcorr", "align", *inputs, "-o", "OUT", *work.options.words]),
    )


def _title(work: Work[AlignOptions]) -> str:
    names = [path.name or str(path) for path in work.inputs]
    return f"Alignment of {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _facts(work: Work[AlignOptions], engines: str) -> tuple[tuple[str, str], ...]:
    """What ran on what; nothing that differs between a run and the same run resumed."""
    options, s = work.options, work.options.settings
    of_shifts = options.model == "translation"
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
    on_cpu = "32 frames a stack" if work.device.xp is np else "every frame"
    known = {"auto": on_cpu, "all": "every frame", "none": "not checked"}
    checked = known.get(str(options.verified), f"{options.verified} frames a stack")
    return (
        ("Program", f"xcorr {own_version()}"),
        ("Input", ", ".join(str(path) for path in work.inputs)),
        ("Device", f"{work.device.description}; {processor()}"),
        ("Engine", engines),
        ("Measured by", "; ".join([measured, *extras]) if of_shifts else f"motion {options.motion}"),
        ("Checked against the float64 FFT", checked if of_shifts else "not checked: only shifts are"),
        ("Output", written),
        ("Versions", ", ".join(f"{name} {version}" for name, version in versions().items() if name != "xcorr-app")),
    )
