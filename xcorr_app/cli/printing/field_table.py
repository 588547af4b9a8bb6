"""Results of ``xcorr field`` on the terminal."""

from __future__ import annotations

from rich.console import Console

from xcorr_app.batch.stack_work import Facts
from xcorr_app.cli.printing.run_table import notes_of, print_run
from xcorr_app.pipeline.outcome import Outcome, Run

_HEADINGS = ("fields", "grid", "largest", "standard error", "replaced")


def print_fields(console: Console, result: Run[Facts]) -> None:
    """One line a stack, what is wrong or worth knowing, and where the record is."""
    print_run(console, result, _HEADINGS, _numbers, "measured", remarks=_remarks)


def _numbers(facts: Facts) -> list[str]:
    return [
        str(facts["fields"]),
        " x ".join(map(str, facts["grid"])),
        f"{facts['largest_displacement_px']:.3f} px",
        f"{facts['median_sigma_px']:.4f} px",
        f"{100 * facts['replaced']:.1f} %",
    ]


def _remarks(outcome: Outcome[Facts]) -> list[str]:
    advice = ["most vectors had to be replaced: larger windows may help, --window"] if outcome.flagged else []
    return [*notes_of(outcome), *advice]
