"""Results of a run over stacks on the terminal: a line a stack, remarks, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from xcorr_app.cli.failures import one_line
from xcorr_app.cli.printing.tables import say, say_of
from xcorr_app.pipeline.outcome import Outcome, Run
from xcorr_app.report.summary import count


def print_run(
    console: Console,
    run: Run,
    headings: Sequence[str],
    numbers: Callable[[dict[str, Any]], list[str]],
    done: str,
    *,
    remarks: Callable[[Outcome], list[str]] | None = None,
    advice: str = "",
) -> None:
    """One line a stack, what is wrong or worth knowing, and where the record is.

    `numbers` are those of a stack's facts, one a heading; `done` says what became of stacks that did not fail, and
    `advice` what to do about those of which a part did.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("stack", overflow="fold", min_width=14)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("result", no_wrap=True)
    for outcome in run.outcomes:
        shown = numbers(outcome.facts) if outcome.facts else [""] * len(headings)
        verdict = Text("failed", style="red") if outcome.failed else Text("good", style="green")
        table.add_row(Text(one_line(outcome.name)), *shown, verdict)
    console.print(table)
    for outcome in run.outcomes:
        for line in [*(remarks or _notes_of)(outcome), *([advice] if advice and outcome.flagged else [])]:
            say_of(console, outcome.name, line)
    if run.resumed:
        say(console, f"Finished before: {', '.join(run.resumed)}")
    failed, total = sum(outcome.failed for outcome in run.outcomes), count(len(run.outcomes), "stack")
    say(console, f"{failed} of {total} failed." if failed else f"{total} {done}.", "red" if failed else "green")
    say(console, f"Record: {run.record}")


def _notes_of(outcome: Outcome) -> list[str]:
    """Why a stack failed, or its notes."""
    return [outcome.failure] if outcome.failure is not None else list(outcome.facts["notes"])
