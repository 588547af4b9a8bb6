"""Results of ``xcorr field`` on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from xcorr_app.batch.field.run import Facts
from xcorr_app.cli.failures import one_line
from xcorr_app.cli.tables import say
from xcorr_app.pipeline.run import Run


def print_fields(console: Console, result: Run[Facts]) -> None:
    """One line a series, what is wrong or worth knowing, and where the record is."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("series", overflow="fold", min_width=14)
    for heading in ("fields", "grid", "largest", "standard error", "replaced"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("result", no_wrap=True)
    for outcome in result.outcomes:
        facts, numbers = outcome.facts, [""] * 5
        if facts:
            numbers = [
                str(facts["fields"]),
                " x ".join(map(str, facts["grid"])),
                f"{facts['largest_displacement_px']:.3f} px",
                f"{facts['median_sigma_px']:.4f} px",
                f"{100 * facts['replaced']:.1f} %",
            ]
        verdict = Text("failed", style="red") if outcome.failed else Text("good", style="green")
        table.add_row(Text(one_line(outcome.name)), *numbers, verdict)
    console.print(table)
    for outcome in result.outcomes:
        for line in [outcome.failure] if outcome.failure is not None else outcome.facts["notes"]:
            say(console, f"  {outcome.name}: {line}")
        if outcome.flagged:
            say(console, f"  {outcome.name}: most vectors had to be replaced: larger windows may help, --window")
    if result.resumed:
        say(console, f"Finished before: {', '.join(result.resumed)}")
    failed = sum(outcome.failed for outcome in result.outcomes)
    total = f"{len(result.outcomes)} series"
    say(console, f"{failed} of {total} failed." if failed else f"{total} measured.", "red" if failed else "green")
    say(console, f"Record: {result.record}")
