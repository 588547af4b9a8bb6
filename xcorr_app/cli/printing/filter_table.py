"""Results of ``xcorr filter`` on the terminal."""

from __future__ import annotations

from functools import partial

from rich.console import Console

from xcorr_app.cli.printing.tables import print_run
from xcorr_app.pipeline.outcome import Outcome, Run
from xcorr_app.pipeline.work import Facts

_HEADINGS = ("planes", "shape", "type", "clipped", "seconds")
_SHOWN = 5


def print_filtered(console: Console, result: Run, *, every: bool) -> None:
    """One line a stack, what is wrong or worth knowing, and where the record is.

    Of planes that cannot be read, the first few are named, or all of them if `every` is set.
    """
    print_run(console, result, _HEADINGS, _numbers, "filtered", remarks=partial(_remarks, every=every))


def failures_of(result: Run) -> list[tuple[str, str]]:
    """Name and reasons of every stack that failed, wholly or in part."""
    return [(each.name, "; ".join(_remarks(each, every=False))) for each in result.outcomes if each.failed]


def _numbers(facts: Facts) -> list[str]:
    shape = " x ".join(map(str, facts["shape"]))
    return [
        str(facts["planes"]),
        shape,
        facts["dtype"],
        str(facts["clipped_pixels"]),
        f"{facts['seconds']['filter']:.2f}",
    ]


def _remarks(outcome: Outcome, *, every: bool) -> list[str]:
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
