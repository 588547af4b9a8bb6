"""Results of ``xcorr align`` on the terminal."""

import math

from rich.console import Console

from xcorr_app.batch.align.run import report_of
from xcorr_app.cli.printing.tables import STYLES, StackLine, new_table, print_stacks, say
from xcorr_app.pipeline.work import Run
from xcorr_app.registration.assessment import BeforeAfter
from xcorr_app.registration.results.frame_table import cells_of
from xcorr_app.report.records import StackReport
from xcorr_app.report.summary import StackSummary, summarise, verdict

_OF_FRAMES = (
    *("frame", "dy", "dx", "applied_dy", "applied_dx", "score", "peak_ratio", "difference"),
    *("flags", "remarks"),
)
"""Columns of their table that are printed."""


def print_results(console: Console, run: Run, *, every: bool = False) -> None:
    """One line a stack, the reasons of failures, notes, and where the report is; before it, `every` frame if wanted."""
    stacks = [report_of(outcome) for outcome in run.outcomes]
    for stack in stacks if every else ():
        print_frames(console, stack)
    summaries = [summarise(stack) for stack in stacks]
    turned = any(summary.largest_turn is not None for summary in summaries)
    longest = "largest motion" if turned else "largest shift"
    numbers = ("frames", "corrected", "correlation", "crispness", "residual", longest, "flagged")
    lines = [
        StackLine(stack.name, _numbers(summary), summary.level, _remarks(stack, summary))
        for stack, summary in zip(stacks, summaries, strict=True)
    ]
    print_stacks(console, run, numbers, lines)
    level, sentence = verdict(summaries)
    say(console, sentence.replace("\N{NO-BREAK SPACE}", " ").replace("→", ">"), STYLES[level])
    if run.report is not None:
        say(console, f"Report: {run.report}")


def failures_of(run: Run) -> list[tuple[str, str]]:
    """Name and reason of every stack that failed, or whose frames could not be trusted."""
    stacks = [report_of(each) for each in run.outcomes if each.failed]
    return [(stack.name, stack.failure or "; ".join(_remarks(stack, summarise(stack)))) for stack in stacks]


def print_frames(console: Console, stack: StackReport) -> None:
    """Every frame of a stack, as its table has them."""
    table = new_table(*_OF_FRAMES[:-2], last=_OF_FRAMES[-2:])
    for cells in cells_of(stack.rows, _OF_FRAMES):
        table.add_row(*cells)
    say(console, stack.name, "bold")
    console.print(table)


def _numbers(summary: StackSummary) -> list[str]:
    known, shift, turn = summary.stack.assessment, summary.largest_shift, summary.largest_turn
    longest = ([] if shift is None else [f"{shift:.2f} px"]) + ([] if turn is None else [f"{turn:.2f} degrees"])
    return [
        str(summary.frames),
        "" if summary.is_lone else f"{summary.corrected} of {summary.compared}",
        "" if known is None else _pair(known.correlation, "{:.3f}"),
        "" if known is None else _pair(known.crispness, "{:.3f}"),
        "" if known is None else _pair(known.residual_shift, "{:.2f}", " px"),
        ", ".join(longest),
        str(summary.flagged),
    ]


def _remarks(stack: StackReport, summary: StackSummary) -> list[str]:
    if stack.failure is not None:
        return [stack.failure]
    failed = [f"{'failed: ' if summary.is_no_better else ''}{summary.distrust}"] if summary.is_untrusted else []
    counted = [*stack.counted("flags"), *stack.counted("remarks")]
    return [*failed, *summary.objections, *stack.notes, *counted]


def _pair(pair: BeforeAfter, form: str, unit: str = "") -> str:
    """What it was and what it is; ASCII, since not every terminal has an arrow. Nothing where neither is known."""
    if not any(map(math.isfinite, pair)):
        return ""
    before, after = (form.format(value) if math.isfinite(value) else "?" for value in pair)
    return f"{before} > {after}{unit}"
