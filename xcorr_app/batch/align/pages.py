"""The pages of a run: what is drawn of each stack as soon as it is computed, and the one that shows them all."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.batch.align.projections import Projections
from xcorr_app.io import atomic_write_text
from xcorr_app.io.source import timed
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.pipeline.stages import Stages, StageTime, own_version, processor, versions
from xcorr_app.pipeline.state import REPORT
from xcorr_app.pipeline.work import Outcome, Work
from xcorr_app.report.encoding import ALONE, MAX_SECTIONS, room_for
from xcorr_app.report.html import own_page, render_report, render_section
from xcorr_app.report.records import RunReport, StackReport

SECTION = ".html"
"""Of the file beside a stack's record that holds its section of the page of all, for when the page is written."""


def draw_stack(
    report: StackReport,
    projections: Projections | None,
    work: Work[AlignOptions],
    engine: str,
    outputs: list[Path],
    resources: StackResources,
) -> dict[str, Any]:
    """Draw a stack's section and, of one of many, a page of its own; returns what is kept of its report.

    What a quick report leaves out is in the tables of shifts.
    """
    files, room, kind = {}, room_for(work.stacks), work.options.report
    has_page = kind == "full" and room is not ALONE
    with timed(resources.stages.meter, "draw"):
        shown = None if projections is None else projections.pictures()
        report = replace(report, files=tuple(path.name for path in outputs), pictures=shown)
        if kind != "none" and work.stacks <= MAX_SECTIONS:
            page = own_page(report.name) if has_page else ""
            base = own_page(report.name).removesuffix(REPORT)
            section = render_section(report, room, page, base, is_alone=work.stacks == 1)
            files[work.state.attachment(report.name, SECTION)] = section
        if has_page:
            files[work.out / report.name / REPORT] = render_report(_run_report(work, [engine], (report,), report.name))
    for path, text in files.items():
        resources.write_bytes(path, text.encode())
    outputs += files
    return {"report": report.as_record()}


def write_page(work: Work[AlignOptions], outcomes: Sequence[Outcome], stages: Stages) -> Path | None:
    """Write the page of all stacks, where one is wanted; with ``-v`` it shows what the stages took, too.

    That is never the same again.
    """
    path = work.out / REPORT
    if work.options.report == "none":
        # That of an earlier run would show something else.
        path.unlink(missing_ok=True)
        return None
    ran = (outcome.facts["engine"] for outcome in outcomes if "engine" in outcome.facts)
    reports, sections = tuple(map(report_of, outcomes)), {}
    shown = sorted(stages.times(), key=lambda stage: -stage.held_up) if work.options.verbose else ()
    for outcome in outcomes:
        with suppress(FileNotFoundError):
            sections[outcome.name] = work.state.attachment(outcome.name, SECTION).read_text(encoding="utf-8")
    pages = frozenset(report.name for report in reports if (work.out / report.name / REPORT).is_file())
    run = replace(_run_report(work, ran, reports, _title(work), shown), pages=pages)
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
        shlex.join(["xcorr", "align", *inputs, "-o", "OUT", *work.options.words()]),
    )


def _title(work: Work[AlignOptions]) -> str:
    names = [path.name or str(path) for path in work.inputs]
    return f"Alignment of {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _facts(work: Work[AlignOptions], engines: str) -> tuple[tuple[str, str], ...]:
    """What ran on what; nothing that differs between a run and the same run resumed."""
    options, s = work.options, work.options.settings
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
        ("Measured by", "; ".join([measured, *extras])),
        ("Checked against the float64 FFT", checked),
        ("Output", written),
        ("Versions", ", ".join(f"{name} {version}" for name, version in versions().items() if name != "xcorr-app")),
    )
