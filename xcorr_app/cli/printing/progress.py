"""Progress of a run: a bar on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from xcorr_app.io import Discovery
from xcorr_app.pipeline.work import Watcher
from xcorr_app.registration.stack import passes

_LAST_STAGE = "move"
_SECONDS_BETWEEN_LINES = 10.0
Show = Callable[[str, int, int], None]
"""Shows what is done, how much of it, and of how much."""


class _Rate(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.0f} {self._unit}/s" if task.speed else "")


@contextmanager
def _bar(console: Console, unit: str) -> Iterator[Show]:
    """A bar for the whole run, with rate and time left, that says what is done to which stack."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(unit),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:

        def show(what: str, done: int, of: int) -> None:
            (task,) = progress.task_ids or [progress.add_task(what)]
            progress.update(task, completed=done, total=of, description=what)

        yield show


@contextmanager
def _lines(console: Console, unit: str) -> Iterator[Show]:
    """A line every few seconds, for runs that take that long."""
    times = list[float]()

    def show(what: str, done: int, of: int) -> None:
        now = time.monotonic()
        if not times:
            times.extend([now, now])
        started, printed = times
        if now - printed >= _SECONDS_BETWEEN_LINES and done:
            times[1], rate = now, done / (now - started)
            line = f"{what} {done}/{of}, {rate:.0f} {unit}/s, {(of - done) / rate:.0f} s left"
            console.print(line, markup=False, highlight=False, soft_wrap=True)

    yield show


@contextmanager
def display_for(
    console: Console,
    *,
    quiet: bool,
    unit: str = "frames",
    counts: Mapping[str, int] | None = None,
    halves: bool = False,
) -> Iterator[Watcher]:
    """Bar on a terminal, lines elsewhere, nothing when quiet; `unit` is what is counted.

    Where the `counts` of all stacks of a run are known, in their order, the run is shown as a whole. Of a stack that is
    measured and then moved each does `halves`. How many passes measuring takes is not known beforehand: those after the
    first are not counted, so that the number never falls.
    """
    if quiet:
        yield lambda _name: None
        return
    known = counts or {}
    before = dict(zip(known, accumulate(known.values(), initial=0), strict=False))
    whole = sum(known.values())
    with (_bar if console.is_terminal else _lines)(console, unit) as show:

        def watch(name: str) -> passes.Progress:
            furthest = 0.0

            def progress(stage: str, done: int, total: int) -> None:
                nonlocal furthest
                share = done / max(total, 1)
                if halves and known:
                    share = (share + (stage == _LAST_STAGE)) / 2
                furthest = max(furthest, share)
                so_far = before.get(name, 0) + furthest * known.get(name, total)
                show(f"{name}: {stage}", int(so_far + 1e-6), whole or total)

            return progress

        yield watch


def counts_of(discovery: Discovery, counted: Callable[[dict[str, int]], int]) -> dict[str, int]:
    """Count what a run does to each of the stacks found; `counted` tells of the sizes of a stack's axes how much."""
    counts = {}
    for spec in discovery.series:
        with spec.open() as source:
            counts[spec.name] = counted(source.sizes)
    return counts
