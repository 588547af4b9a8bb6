"""Results of ``xcorr apply`` on the terminal."""

from __future__ import annotations

from rich.console import Console

from xcorr_app.batch.stack_work import Facts
from xcorr_app.cli.printing.run_table import print_run
from xcorr_app.pipeline.outcome import Run

_HEADINGS = ("frames", "largest shift", "matched", "clipped", "seconds")


def print_applied(console: Console, result: Run[Facts]) -> None:
    """One line a stack, what is wrong or worth knowing, and where the record is."""
    print_run(console, result, _HEADINGS, _numbers, "moved")


def _numbers(facts: Facts) -> list[str]:
    largest, seconds = f"{facts['largest_shift_px']:.2f} px", f"{facts['seconds']['move']:.2f}"
    return [str(facts["frames"]), largest, facts["matched"], str(facts["clipped_pixels"]), seconds]
