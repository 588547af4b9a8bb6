"""Results of ``xcorr apply`` on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from xcorr_app.batch.apply.run import Facts
from xcorr_app.cli.failures import one_line
from xcorr_app.cli.tables import say
from xcorr_app.pipeline.run import Run
from xcorr_app.report.summary import count


def print_applied(console: Console, result: Run[Facts]) -> None:
    """One line a stack, what is wrong or worth knowing, and where the record is."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("stack", overflow="fold", min_width=14)
    for heading in ("frames", "largest shift", "matched", "clipped", "seconds"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("result", no_wrap=True)
    for outcome in result.outcomes:
        facts, numbers = outcome.facts, [""] * 5
        if facts:
            largest = f"{facts['largest_shift_px']:.2f} px"
            seconds = f"{facts['seconds']['move']:.2f}"
            numbers = [str(facts["frames"]), largest, facts["matched"], str(facts["clipped_pixels"]), seconds]
        verdict = Text("failed", style="red") if outcome.failed else Text("good", style="green")
        table.add_row(Text(one_line(outcome.name)), *numbers, verdict)
    console.print(table)
    for outcome in result.outcomes:
        for line in [outcome.failure] if outcome.failure is not None else outcome.facts["notes"]:
            say(console, f"  {outcome.name}: {line}")
    if result.resumed:
        say(console, f"Finished before: {', '.join(result.resumed)}")
    failed = sum(outcome.failed for outcome in result.outcomes)
    total = count(len(result.outcomes), "stack")
    say(console, f"{failed} of {total} failed." if failed else f"{total} moved.", "red" if failed else "green")
    say(console, f"Record: {result.record}")
