"""Times of the benchmarks of filters, Im2win and pointwise convolutions as tables on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.correlation.tables import FASTEST, in_microseconds
from benchmarks.work.goals import Goal
from benchmarks.work.means import Mean
from benchmarks.work.records import WorkResult, WorkTiming
from xcorr_app.cli.failures import one_line

_MISSED = "bold red"
_PLACES = 3  # digits after the point in multiples of the floor


def print_result(console: Console, result: WorkResult) -> None:
    """Print every contender of a case, the fastest first."""
    title = f"{result.name}  (floor {in_microseconds(result.floor_microseconds)} us)"
    table = _table(Text(title))
    table.add_column("", no_wrap=True)
    with_memory = any(timing.memory_bytes for timing in result.timings)
    headings = ("us", "x floor", "of F", *(("MB",) if with_memory else ()), "registers", "error")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for timing in sorted(result.timings, key=lambda timing: (bool(timing.failure), timing.microseconds)):
        cells = _cells(timing, result, with_memory=with_memory)
        table.add_row(*cells, style=FASTEST if timing is result.winner else "")
    console.print(table)
    console.print(Text(_verdict(result)), soft_wrap=True)
    console.print()


def print_group(console: Console, results: Sequence[WorkResult]) -> None:
    """Print the cases of a group, one a line."""
    table = _table(Text(results[0].group))
    table.add_column("", no_wrap=True)
    for heading in ("floor us", "us", "x floor", "best peer", "x floor", "peer / own"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for result in results:
        own, peer, speed = result.best_own, result.best_peer, result.speed_over_peer
        table.add_row(
            Text(result.name),
            in_microseconds(result.floor_microseconds),
            in_microseconds(own.microseconds) if own else "-",
            f"{own.multiple_of_floor:.{_PLACES}f}" if own else "",
            in_microseconds(peer.microseconds) if peer else "",
            f"{peer.multiple_of_floor:.{_PLACES}f}" if peer else "",
            f"{speed:.2f}x" if speed is not None else "",
            Text("; ".join(_remarks(result))),
            style=_MISSED if any(goal.reached(result) is False for goal in result.goals) else "",
        )
    console.print(table)
    worst = max((result.best_own for result in results if result.best_own), key=_multiple, default=None)
    if worst is not None:
        line = f"at most {worst.multiple_of_floor:.2f} x floor, in {worst.case!r}"
        console.print(Text(line), soft_wrap=True)
    console.print()


def print_means(console: Console, means: Sequence[Mean]) -> None:
    """Print geometric means over groups."""
    if not means:
        return
    table = _table(Text("geometric means of floor / time"))
    for heading in ("group", "contender"):
        table.add_column(heading, no_wrap=True)
    for heading in ("mean", "cases"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for mean in means:
        goal = "" if mean.goal is None else f"at least {mean.goal:.3f}: {_word(mean.reached)}"
        counted = f"{mean.cases} of {mean.of}"
        table.add_row(Text(mean.group), Text(mean.what), f"{mean.floor_over_time:.3f}", counted, Text(goal))
    console.print(table)
    console.print()


def print_goals(console: Console, results: Sequence[WorkResult]) -> None:
    """Print a line for every case with goals: who wins, what was reached and what was not."""
    table = _table(Text("goals"))
    table.add_column("case", overflow="fold")
    table.add_column("winner", no_wrap=True)
    for heading in ("us", "x floor", "of F", "peer / own"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("goals", overflow="fold")
    for result in results:
        if not result.goals or result.group:
            continue
        own, winner, speed = result.best_own, result.winner, result.speed_over_peer
        table.add_row(
            Text(result.name),
            Text(winner.what if winner else "nobody"),
            in_microseconds(own.microseconds) if own else "-",
            f"{own.multiple_of_floor:.{_PLACES}f}" if own else "",
            _share(own) if own else "",
            f"{speed:.2f}x" if speed is not None else "",
            Text("; ".join(_goal(goal, result) for goal in result.goals)),
            style=_MISSED if any(goal.reached(result) is False for goal in result.goals) else "",
        )
    if table.row_count:
        console.print(table)
    counted = [goal.reached(result) for result in results for goal in result.goals]
    if counted:
        line = f"{counted.count(True)} goals reached, {counted.count(False)} missed, {counted.count(None)} not measured"
        console.print(Text(line), soft_wrap=True)


def _table(title: Text) -> Table:
    return Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")


def _cells(timing: WorkTiming, result: WorkResult, *, with_memory: bool) -> tuple[str | Text, ...]:
    if timing.failure:
        return Text(timing.what), "-", "", "", *([""] if with_memory else []), "", "", Text(one_line(timing.failure))
    marks = ["<- auto"] if timing is result.of_auto else []
    memory = [f"{timing.memory_bytes / 1e6:.1f}" if timing.memory_bytes else ""] if with_memory else []
    return (
        Text(timing.what),
        in_microseconds(timing.microseconds),
        f"{timing.multiple_of_floor:.{_PLACES}f}",
        _share(timing),
        *memory,
        f"{timing.registers}" if timing.registers else "",
        f"{timing.error:.0e}",
        Text(" ".join([*marks, timing.note])),
    )


def _share(timing: WorkTiming) -> str:
    """Fraction of the FMA rate; nothing for work whose floor counts no multiply-adds."""
    return f"{timing.fraction_of_fma_rate:.3f}" if timing.fraction_of_fma_rate else ""


def _verdict(result: WorkResult) -> str:
    parts = [f"wins: {result.winner.what}" if result.winner else "nobody could run this"]
    if result.of_auto is not None and result.auto_behind_percent:
        parts.append(f"auto is {result.auto_behind_percent:.1f} % behind the product's best")
    parts += [f"goal {_goal(goal, result)}" for goal in result.goals]
    return "; ".join(parts)


def _remarks(result: WorkResult) -> list[str]:
    """Who fails, and which peer was the best."""
    failed = [f"{timing.what}: {one_line(timing.failure)}" for timing in result.timings if timing.failure]
    peer = result.best_peer
    return [*([f"{peer.what} {peer.note}".rstrip()] if peer else []), *failed]


def _goal(goal: Goal, result: WorkResult) -> str:
    value = goal.value(result)
    measured = "" if value is None else f" ({value:.3g})"
    return f"{goal.text}: {_word(goal.reached(result))}{measured}"


def _word(reached: bool | None) -> str:
    return {True: "reached", False: "missed", None: "not measured"}[reached]


def _multiple(timing: WorkTiming) -> float:
    return timing.multiple_of_floor
