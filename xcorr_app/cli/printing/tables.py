"""The terminal as every command writes to it."""

import io
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

from xcorr_app.cli.process import LastingOutput, one_line
from xcorr_app.decision import Decision
from xcorr_app.errors import XcorrError
from xcorr_app.io import Discovery
from xcorr_app.pipeline.stages import Stages
from xcorr_app.pipeline.work import Outcome, Run, Work
from xcorr_app.report.summary import count

_WIDTH_OF_FILES, _LEAST_WIDTH = 200, 100
_MAX_ROWS, _MAX_NAMES = 50, 3
"""Of more stacks, a table has only those that are not good; a remark on more of them names the first."""
STYLES = {"good": "green", "doubtful": "yellow", "failed": "red"}


class StackLine(NamedTuple):
    """A stack in a table, and what is said of it below."""

    name: str
    cells: list[str]
    level: str
    remarks: list[str]


def console_for(stream: TextIO | None) -> Console:
    """Console whose lines are not folded where nobody looks, and whose text can be written in any encoding.

    Without a stream, as where standard output was closed before the program began, nothing is printed.
    """
    if stream is None:
        return Console(file=io.StringIO(), quiet=True)
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    output = cast("TextIO", LastingOutput(stream))
    console = Console(file=output, width=None if stream.isatty() else _WIDTH_OF_FILES)
    # A narrower terminal folds lines, which cuts no number.
    console.width = max(console.width, _LEAST_WIDTH)
    return console


def new_table(first: str, *numbers: str, last: Sequence[str] = ()) -> Table:
    """A table without lines: names, numbers, and what is said of them; nothing is cut but folded names."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first, overflow="fold", min_width=14 if first == "stack" else None)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in last:
        table.add_column(heading, no_wrap=True)
    return table


def say(console: Console, text: str, style: str = "") -> None:
    """Print one line, not folded, without markup."""
    console.print(Text(one_line(text), style=style), soft_wrap=True)


def print_failures(failures: Iterable[tuple[str, str]]) -> None:
    """What ``-q`` leaves of a run: a line on standard error for each stack that failed."""
    for name, reason in failures:
        print(f"xcorr: {one_line(_named(name, reason))}", file=sys.stderr)


def _named(name: str, text: str) -> str:
    """A remark after the name of what it is about, once: errors of a file begin with its path."""
    path, colon, rest = text.partition(": ")
    return f"{name}: {rest if colon and Path(path).name == name else text}"


def failures_in(outcomes: Iterable[Outcome]) -> list[tuple[str, str]]:
    """Name and reason of every stack that failed."""
    return [(each.name, each.failure or "; ".join(map(str, each.facts["notes"]))) for each in outcomes if each.failed]


def print_found(console: Console, discovery: Discovery, note: str | None) -> None:
    """What a run is about to work on; `note` is why it uses no GPU."""
    if note:
        say(console, note)
    if discovery.series:
        files = count(sum(len(spec.paths) for spec in discovery.series), "file")
        say(console, f"Found {count(len(discovery.series), 'stack')} in {files}, layout {discovery.layout}.")
    for note in discovery.notes:
        say(console, note)
    for spec in discovery.series:
        if spec.layout == "numbered":
            sizes = ", ".join(
                f"{axis}={size}" for axis, size in spec.open().sizes.items() if axis in "TZC" and size > 1
            )
            say(console, f"{spec.name}: {count(len(spec.paths), 'file')} put together by name: {sizes}.")


def print_decision(console: Console, name: str, decision: Decision) -> None:
    """What would compute a stack and what else could."""
    first, *others = decision.described().splitlines()
    say(console, f"{name}: {first}")
    for line in others:
        say(console, line)


def print_explained(console: Console, work: Work[Any]) -> None:
    """What a run would do with each stack, and what would compute it."""
    print_found(console, work.discovery, f"Device: {work.device.description}. Output: {work.out}")
    for spec in work.discovery.series:
        with spec.open() as source:
            known = source.metadata
        shape = " x ".join(map(str, known.shape))
        say(console, f"{count(len(spec.paths), 'file')}, {known.axes} {shape} {known.dtype}:")
        try:
            print_decision(console, spec.name, work.decide(spec))
        except XcorrError as error:
            say(console, f"{spec.name}: cannot be done: {error}")
    for failure in work.discovery.failures:
        say(console, f"cannot be used: {failure.message}")


def print_timings(console: Console, stages: Stages) -> None:
    """How long each stage was busy, and how long the run waited for it; the one that took longest set the pace."""
    table = new_table("stage", "busy", "waited for", "data", "rate")
    for stage in sorted(stages.times(), key=lambda stage: -stage.held_up):
        waited = f"{stage.waited:.2f} s" if stage.waited else ""
        size = f"{stage.size / 1e9:.3g} GB" if stage.size else ""
        rate = "" if stage.rate is None else f"{stage.rate:.2f} GB/s"
        table.add_row(stage.name, f"{stage.busy:.2f} s" if stage.busy else "", waited, size, rate)
    console.print(table)
    slowest = max(stages.times(), key=lambda stage: stage.held_up, default=None)
    if slowest is not None:
        say(console, f"The slowest stage, which set the pace: {slowest.name} ({slowest.held_up:.1f} s)")


def print_run(
    console: Console,
    run: Run,
    columns: Mapping[str, Callable[[dict[str, Any]], str]],
    done: str,
    advice: str = "",
) -> None:
    """One line a stack, what is wrong or worth knowing, and where the record is.

    `columns` make, by their headings, cells of a stack's facts; `done` says what became of stacks that did not fail,
    and `advice` what to do about those of which a part did.
    """
    lines = []
    for outcome in run.outcomes:
        cells = [cell(outcome.facts) if outcome.facts else "" for cell in columns.values()]
        notes = [outcome.failure] if outcome.failure is not None else list(outcome.facts["notes"])
        notes += [advice] * (bool(advice) and outcome.flagged)
        lines.append(StackLine(outcome.name, cells, "failed" if outcome.failed else "good", notes))
    print_stacks(console, run, columns, lines)
    failed, total = sum(outcome.failed for outcome in run.outcomes), count(len(run.outcomes), "stack")
    say(console, f"{failed} of {total} failed." if failed else f"{total} {done}.", "red" if failed else "green")
    say(console, f"Record: {run.record}")


def print_stacks(console: Console, run: Run, headings: Iterable[str], lines: Sequence[StackLine]) -> None:
    """A table of stacks, or where they are many of those that are not good, and what is said of them."""
    table, good = new_table("stack", *headings, last=["result"]), [line.level == "good" for line in lines]
    if len(lines) > _MAX_ROWS:
        say(console, f"{sum(good)} of {len(lines)} stacks are good" + ("" if all(good) else "; the others:"))
    for line, is_good in zip(lines, good, strict=True):
        if len(lines) <= _MAX_ROWS or not is_good:
            table.add_row(Text(one_line(line.name)), *line.cells, Text(line.level, style=STYLES[line.level]))
    if table.row_count:
        console.print(table)
    stacks_of: dict[str, list[str]] = {}
    for line in lines:
        for remark in line.remarks:
            stacks_of.setdefault(remark, []).append(line.name)
    # Once what is said of several.
    for remark, names in stacks_of.items():
        others = len(names) - _MAX_NAMES
        named = ", ".join(names[:_MAX_NAMES]) + (f" and {count(others, 'other')}" if others > 0 else "")
        say(console, f"  {_named(named, remark)}")
    if run.resumed:
        say(console, f"Finished before: {', '.join(run.resumed)}")
