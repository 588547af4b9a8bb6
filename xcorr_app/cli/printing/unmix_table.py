"""What ``xcorr unmix`` says on the terminal."""

from __future__ import annotations

from rich.console import Console

from xcorr_app.batch.unmix.stack import UnmixPlan, UnmixResult
from xcorr_app.cli.printing.tables import print_run, say
from xcorr_app.pipeline.outcome import Run
from xcorr_app.pipeline.work import Facts

_HEADINGS = ("shape", "axes", "type", "clipped", "seconds")
_SHOWN = 8
_ILL_CONDITIONED = 100


def print_mixed(console: Console, run: Run) -> None:
    """One line a stack, what is wrong or worth knowing, and where the record is."""
    print_run(console, run, _HEADINGS, _numbers, "mixed")


def print_plan(console: Console, plan: UnmixPlan, note: str | None = None) -> None:
    """Say what will be read and what it is multiplied by."""
    if note:
        say(console, note)
    old, names = plan.stack.metadata, plan.names or tuple(str(row) for row in range(len(plan.matrix)))
    shape = " x ".join(map(str, old.shape))
    say(
        console,
        f"{plan.stack.path}: {shape} ({old.axes}) {old.dtype}, {plan.stack.channels} channels along {plan.stack.axis}",
    )
    for name, row in list(zip(names, plan.matrix, strict=True))[:_SHOWN]:
        more = " ..." if len(row) > _SHOWN else ""
        say(console, f"  {name} = " + "  ".join(f"{factor:+.4g}" for factor in row[:_SHOWN]) + more)
    if len(names) > _SHOWN:
        say(console, f"  ... and {len(names) - _SHOWN} more channels")
    for line in told_of_spectra(plan.condition_number):
        say(console, line)


def told_of_spectra(condition: float | None) -> list[str]:
    """How far noise grows when spectra are separated."""
    if condition is None:
        return []
    advice = "; the dyes can hardly be told apart, expect noise" if condition > _ILL_CONDITIONED else ""
    return [f"Condition number of the spectra: {condition:.3g}{advice}"]


def print_result(console: Console, plan: UnmixPlan, result: UnmixResult) -> None:
    """Say what a user should know of one file's result, and where it is."""
    for note in result.notes:
        say(console, note)
    if result.clipped:
        say(console, f"{result.clipped} of {result.values} values did not fit {plan.metadata.dtype} and were clipped")
    say(console, f"Mixed channels: {plan.out}")


def _numbers(facts: Facts) -> list[str]:
    shape, clipped, seconds = " x ".join(map(str, facts["shape"])), facts["clipped_values"], facts["seconds"]["unmix"]
    return [shape, facts["axes"], facts["dtype"], str(clipped), f"{seconds:.2f}"]
