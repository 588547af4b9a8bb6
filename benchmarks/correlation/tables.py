"""Times of a benchmark as tables on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.correlation.records import CaseResult, Timing
from benchmarks.harness.device_rates import DeviceRates
from xcorr_app.cli.failures import one_line
from xcorr_app.gpu.runtime.device import DeviceStatus

FASTEST = "bold green"
_IN_CACHE = "inputs that fit the cache stay there, for all"
_IN_TURN = "inputs that fit the cache are copied and taken in turn, so that none stays there"


def print_ceilings(
    console: Console, status: DeviceStatus, rates: DeviceRates, *, has_torch: bool, in_turn: bool = False
) -> None:
    """Print what is measured, and what the columns mean; `in_turn`: inputs that fit the cache are not found in it."""
    copying = f"copy {rates.copy / 1e12:.2f} TB/s, an empty kernel {rates.empty * 1e6:.2f} us"
    lines = [
        f"{status.name}, {status.multiprocessors} multiprocessors, driver for CUDA {status.driver}",
        f"ceilings measured now: {rates.fma / 1e12:.1f} T multiply-adds/s (F), {copying}",
        "floor: the direct method's multiply-adds at F, or its bytes at the copy rate, whichever takes longer",
        f"medians on the device without host time (calls: wall clock); {_IN_TURN if in_turn else _IN_CACHE}",
    ]
    if not has_torch:
        lines.append("PyTorch is not installed: its rows are left out")
    for line in lines:
        console.print(Text(line), soft_wrap=True)


def print_case(console: Console, result: CaseResult) -> None:
    """Print every contender of a case, the fastest first."""
    title = f"{result.name}  (floor {in_microseconds(result.floor_microseconds_a_pair)} us a pair)"
    table = Table(title=Text(title), title_justify="left", box=None, pad_edge=False, header_style="bold")
    table.add_column("", no_wrap=True)
    for heading in ("us a pair", "of floor", "of F", "registers", "error"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for timing in sorted(result.timings, key=lambda timing: (bool(timing.failure), timing.microseconds_a_pair)):
        table.add_row(*_row(timing, result), style=FASTEST if timing is result.winner else "")
    console.print(table)
    console.print(Text(_verdict(result)), soft_wrap=True)
    console.print()


def print_summary(console: Console, results: Sequence[CaseResult]) -> None:
    """Print one line a case: who wins, and how far the product's own choice is from its best."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("case", overflow="fold")
    table.add_column("winner", no_wrap=True)
    for heading in ("us a pair", "of floor", "best peer / own best"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("auto takes", no_wrap=True)
    table.add_column("behind its best", justify="right", no_wrap=True)
    table.add_column("goal", overflow="fold")
    for result in results:
        winner, behind = result.winner, result.auto_behind_percent
        table.add_row(
            Text(result.name),
            Text(winner.what if winner else "nobody"),
            in_microseconds(winner.microseconds_a_pair) if winner else "",
            f"{winner.fraction_of_floor:.3f}" if winner else "",
            "" if result.speed_over_peer is None else f"{result.speed_over_peer:.2f}x",
            Text(result.of_auto.what if result.of_auto else result.auto),
            "" if behind is None else f"{behind:.1f} %",
            Text(result.goal),
        )
    console.print(table)
    known = [result for result in results if result.auto_behind_percent is not None]
    if known:
        worst = max(known, key=lambda result: result.auto_behind_percent or 0.0)
        line = f"auto is at most {worst.auto_behind_percent:.1f} % behind the best engine, in {worst.name!r}"
        console.print(Text(line), soft_wrap=True)


def _row(timing: Timing, result: CaseResult) -> tuple[str | Text, ...]:
    if timing.failure:
        return Text(timing.what), "-", "", "", "", "", Text(one_line(timing.failure))
    marks = ["<- auto"] if timing is result.of_auto else []
    return (
        Text(timing.what),
        in_microseconds(timing.microseconds_a_pair),
        f"{timing.fraction_of_floor:.3f}",
        f"{timing.fraction_of_fma_rate:.3f}",
        f"{timing.registers}" if timing.registers else "",
        f"{timing.error:.0e}",
        Text(" ".join([*marks, timing.note])),
    )


def _verdict(result: CaseResult) -> str:
    parts = [f"wins: {result.winner.what}" if result.winner else "nobody could run this"]
    if result.of_auto is not None and result.auto_behind_percent is not None:
        parts.append(f"auto takes {result.of_auto.what}, {result.auto_behind_percent:.1f} % behind the best engine")
    else:
        parts.append(f"auto takes {result.auto}, which was not timed")
    if result.goal:
        parts.append(f"goal: {result.goal}")
    return "; ".join(parts)


def in_microseconds(microseconds: float) -> str:
    """Three or four digits that count, whatever the size."""
    digits = 1 if microseconds >= 100 else 2 if microseconds >= 10 else 3 if microseconds >= 1 else 4
    return f"{microseconds:.{digits}f}"
