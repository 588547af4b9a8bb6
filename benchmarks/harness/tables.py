"""Times of a suite as tables on the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.harness.device_rates import DeviceRates
from benchmarks.harness.fastest import Outcome
from benchmarks.harness.record import has_torch
from benchmarks.harness.result import Result
from xcorr_app.cli.process import one_line
from xcorr_app.gpu.runtime.device import DeviceStatus


def say(console: Console, text: str) -> None:
    """Print a line that is neither folded nor coloured."""
    console.print(Text(text), soft_wrap=True)


def print_ceilings(console: Console, status: DeviceStatus, rates: DeviceRates, *, in_turn: bool) -> None:
    """Print what is measured, and what the columns mean; `in_turn`: inputs that fit the cache are not found in it."""
    copying = f"copy {rates.copy / 1e12:.2f} TB/s, an empty kernel {rates.empty * 1e6:.2f} us"
    where = "are copied and taken in turn, so that none stays there" if in_turn else "stay there, for all"
    say(console, f"{status.name}, {status.multiprocessors} multiprocessors, driver for CUDA {status.driver}")
    say(console, f"ceilings measured now: {rates.fma / 1e12:.1f} T multiply-adds/s (F), {copying}")
    say(console, "floor: the direct method's multiply-adds at F, or its bytes at the copy rate, whichever takes longer")
    say(console, f"medians on the device without host time; inputs that fit the cache {where}")
    if not has_torch():
        say(console, "PyTorch is not installed: its rows are left out")


def print_result(console: Console, result: Result) -> None:
    """Print every contender of a case, the fastest first; the last line says who wins, and what ``auto`` takes."""
    pairs = result.case.pairs
    floor = f"floor {_digits(result.floor * 1e6 / pairs)} us{' a pair' if pairs > 1 else ''}"
    table = Table(title=Text(f"{result.case.name}  ({floor})"), title_justify="left", box=None, header_style="bold")
    table.add_column("", overflow="fold")
    for heading in ("us", "x floor", "of F", "MB", "registers", "error"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for outcome in sorted(result.outcomes, key=lambda each: (bool(each.failure), each.seconds)):
        table.add_row(*_cells(outcome, result), style="bold green" if outcome is result.winner else "")
    console.print(table)
    parts = [f"wins: {result.winner.what}" if result.winner else "nobody could run this"]
    if result.of_auto is not None and result.auto_behind_percent is not None:
        parts.append(f"auto takes {result.of_auto.what}, {result.auto_behind_percent:.1f} % behind the product's best")
    say(console, "; ".join(parts) + "\n")


def _cells(outcome: Outcome, result: Result) -> Iterable[str | Text]:
    if outcome.failure:
        return Text(outcome.what), "-", "", "", "", "", "", Text(one_line(outcome.failure))
    marks = ["<- auto"] if outcome is result.of_auto else []
    return (
        Text(outcome.what),
        _digits(result.microseconds(outcome)),
        f"{outcome.seconds / result.floor:.3f}",
        f"{result.of_fma_rate(outcome):.3f}" if result.case.fma else "",
        f"{outcome.memory_bytes / 1e6:.1f}" if outcome.memory_bytes else "",
        f"{outcome.registers}" if outcome.registers else "",
        f"{outcome.error:.0e}",
        Text(" ".join([*marks, outcome.note])),
    )


def _digits(microseconds: float) -> str:
    """Three or four digits that count, whatever the size."""
    digits = 1 if microseconds >= 100 else 2 if microseconds >= 10 else 3 if microseconds >= 1 else 4
    return f"{microseconds:.{digits}f}"
