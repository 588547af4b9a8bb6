"""Results of ``xcorr align`` on the terminal."""

from __future__ import annotations

import math
from collections import Counter

from rich.console import Console
from rich.table import Table
from rich.text import Text

from xcorr_app.batch.align.pages import report_of
from xcorr_app.cli.failures import one_line
from xcorr_app.cli.printing.tables import new_table, say, say_once, shown_of
from xcorr_app.pipeline.outcome import Run
from xcorr_app.registration.assessment import BeforeAfter
from xcorr_app.report.records import FLAG_MEANINGS, StackReport
from xcorr_app.report.summary import StackSummary, summarise, verdict

_STYLES = {"good": "green", "doubtful": "yellow", "failed": "red"}


def print_results(console: Console, run: Run, *, every: bool = False) -> None:
    """One line a stack, the reasons of failures, notes, and where the report is; before it, `every` frame if wanted."""
    stacks = [report_of(outcome) for outcome in run.outcomes]
    for stack in stacks if every else ():
        print_frames(console, stack)
    summaries = [summarise(stack) for stack in stacks]
    turned = any(summary.largest_turn is not None for summary in summaries)
    longest = "largest motion" if turned else "largest shift"
    numbers = ("frames", "corrected", "correlation", "crispness", "residual", longest, "flagged")
    table = new_table("stack", *numbers, last=["result"])
    for summary in shown_of(console, summaries, [summary.level == "good" for summary in summaries]):
        known = summary.assessment
        pairs = (
            ("", "", "")
            if known is None
            else (
                _pair(known.correlation, "{:.3f}"),
                _pair(known.crispness, "{:.3f}"),
                _pair(known.residual_shift, "{:.2f}", " px"),
            )
        )
        table.add_row(
            Text(one_line(summary.name)),
            str(summary.frames),
            "" if summary.is_lone else f"{summary.corrected} of {summary.compared}",
            *pairs,
            ", ".join(filter(None, (_number(summary.largest_shift, "{:.2f} px"), _turn(summary.largest_turn)))),
            str(summary.flagged),
            Text(summary.level, style=_STYLES[summary.level]),
        )
    if table.row_count:
        console.print(table)
    both = zip(stacks, summaries, strict=True)
    say_once(console, ((stack.name, line) for stack, summary in both for line in _remarks(stack, summary)))
    if run.resumed:
        say(console, f"Finished before: {', '.join(run.resumed)}")
    level, sentence = verdict(summaries)
    say(console, sentence.replace("\N{NO-BREAK SPACE}", " ").replace("→", ">"), _STYLES[level])
    if run.report is not None:
        say(console, f"Report: {run.report}")


def failures_of(run: Run) -> list[tuple[str, str]]:
    """Name and reason of every stack that failed, or whose frames could not be trusted."""
    stacks = [report_of(each) for each in run.outcomes if each.failed]
    return [(stack.name, stack.failure or "; ".join(_remarks(stack, summarise(stack)))) for stack in stacks]


def print_frames(console: Console, stack: StackReport) -> None:
    """Every frame of a stack."""
    table = Table(title=Text(one_line(stack.name)), box=None, pad_edge=False, header_style="bold")
    for heading in ("frame", "dy", "dx", "applied dy", "applied dx", "score", "peak ratio", "difference"):
        table.add_column(heading, justify="right")
    table.add_column("flags")
    table.add_column("remarks")
    for row in stack.rows:
        difference = "" if math.isnan(row.difference) else f"{row.difference:.6f}"
        applied = ("", "") if row.as_measured else (f"{row.applied_dy:.3f}", f"{row.applied_dx:.3f}")
        applied = ("dropped", "dropped") if row.is_dropped else applied
        numbers = (f"{row.dy:.3f}", f"{row.dx:.3f}", *applied, f"{row.score:.4f}", f"{row.peak_ratio:.2f}")
        table.add_row(str(row.frame), *numbers, difference, "|".join(row.flags), "|".join(row.remarks))
    console.print(table)


def _remarks(stack: StackReport, summary: StackSummary) -> list[str]:
    if stack.failure is not None:
        return [stack.failure]
    failed = [f"{'failed: ' if summary.is_no_better else ''}{summary.distrust}"] if summary.is_untrusted else []
    advice = [] if stack.advice is None else [f"Try this: {stack.advice}"]
    flags, remarks = (
        [f"{number} x {word}: {FLAG_MEANINGS.get(word, '')}" for word, number in Counter(words).items()]
        for words in (
            [word for row in stack.rows for word in row.flags],
            [word for row in stack.rows for word in row.remarks],
        )
    )
    return [*failed, *advice, *summary.objections, *stack.notes, *flags, *remarks]


def _pair(pair: BeforeAfter, form: str, unit: str = "") -> str:
    """What it was and what it is; ASCII, since not every terminal has an arrow. Nothing where neither is known."""
    if not any(map(math.isfinite, pair)):
        return ""
    before, after = (form.format(value) if math.isfinite(value) else "?" for value in pair)
    return f"{before} > {after}{unit}"


def _turn(angle: float | None) -> str:
    return "" if angle is None else f"{angle:.2f} degrees"


def _number(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)
