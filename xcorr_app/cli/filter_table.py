"""Results of ``xcorr filter`` on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from xcorr_app.batch.filter.run import Facts
from xcorr_app.cli.failures import one_line
from xcorr_app.cli.tables import say
from xcorr_app.pipeline.run import Outcome, Run
from xcorr_app.report.summary import count

_SHOWN = 5


def print_filtered(console: Console, result: Run[Facts], *, every: bool) -> None:
    """One line a stack, what is wrong or worth knowing, and where the record is.

    Of planes that cannot be read, the first few are named, or all of them if `every` is set.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("stack", overflow="fold", min_width=14)
    for heading in ("planes", "shape", "type", "clipped", "seconds"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("result", no_wrap=True)
    for outcome in result.outcomes:
        verdict = Text("failed", style="red") if outcome.failed else Text("good", style="green")
        table.add_row(Text(one_line(outcome.name)), *_numbers(outcome), verdict)
    console.print(table)
    for outcome in result.outcomes:
        for line in _remarks(outcome, every=every):
            say(console, f"  {outcome.name}: {line}")
    if result.resumed:
        say(console, f"Finished before: {', '.join(result.resumed)}")
    failed = sum(outcome.failed for outcome in result.outcomes)
    total = count(len(result.outcomes), "stack")
    sentence = f"{failed} of {total} failed." if failed else f"{total} filtered."
    say(console, sentence, "red" if failed else "green")
    say(console, f"Record: {result.record}")


def failures_of(result: Run[Facts]) -> list[tuple[str, str]]:
    """Name and reasons of every stack that failed, wholly or in part."""
    return [(each.name, "; ".join(_remarks(each, every=False))) for each in result.outcomes if each.failed]


def _numbers(outcome: Outcome[Facts]) -> list[str]:
    facts = outcome.facts
    if not facts:
        return [""] * 5
    shape = " x ".join(map(str, facts["shape"]))
    return [
        str(facts["planes"]),
        shape,
        facts["dtype"],
        str(facts["clipped_pixels"]),
        f"{facts['seconds']['filter']:.2f}",
    ]


def _remarks(outcome: Outcome[Facts], *, every: bool) -> list[str]:
    if outcome.failure is not None:
        return [outcome.failure]
    facts = outcome.facts
    lines = list(facts["notes"])
    if clipped := facts["clipped_pixels"]:
        what = "pixel did" if clipped == 1 else "pixels did"
        lines.append(
            f"{clipped} {what} not fit {facts['dtype']} and took the nearest end of its range; "
            "--dtype float32 keeps their values"
        )
    if unusual := facts["non_finite_pixels"]:
        lines.append(f"{unusual} {'pixel is' if unusual == 1 else 'pixels are'} NaN or infinite")
    unreadable = list(facts["unreadable"].items())
    shown = unreadable if every else unreadable[:_SHOWN]
    lines += [f"plane {plane} is unreadable and was written as zeros: {reason}" for plane, reason in shown]
    if len(shown) < len(unreadable):
        lines.append(f"... and {len(unreadable) - len(shown)} more planes; -v lists them all")
    return lines
