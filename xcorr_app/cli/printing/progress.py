"""Progress of a run: a bar on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate, pairwise

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

_LAST_STAGES = ("move",)
_SECONDS_BETWEEN_LINES = 10.0
Show = Callable[[str, int, int], None]
"""Shows what is done, how much of it, and of how much."""


class _Rate(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.0f} {self._unit}/s" if task.speed else "")


class RunCount:
    """Frames done in a run of many stacks, from what each stack tells of its stages.

    A stack whose frames are measured and then moved has half of each frame done by measuring. How many passes measuring
    takes is not known beforehand: passes after the first are not counted, so that the number never falls. One stack is
    moved while the next one is measured.
    """

    def __init__(self, frames: Mapping[str, int], *, halves: bool) -> None:
        self._frames, self._halves, self.total = frames, halves, sum(frames.values())
        self._before = dict(zip(frames, accumulate(frames.values(), initial=0), strict=False))
        self._previous = {name: earlier for earlier, name in pairwise(frames)}
        self._shares: dict[str, float] = {}

    def begin(self, name: str) -> Callable[[str, int, int], int]:
        """Begin a stack; what is returned takes in how far a stage of it is, and returns the frames done in the run."""
        earlier = self._previous.get(name, name)
        # The one before it may still be moved, unless it never began: an earlier run had finished it.
        self._shares = {earlier: self._shares.get(earlier, 1.0), name: 0.0}

        def advance(stage: str, done: int, total: int) -> int:
            share = done / max(total, 1)
            if self._halves:
                share = 0.5 + share / 2 if stage in _LAST_STAGES else share / 2
            # Of those before these two, all is done.
            if name in self._shares:
                self._shares[name] = max(self._shares[name], share)
            here = sum(share * self._frames.get(each, total) for each, share in self._shares.items())
            return round(self._before.get(next(iter(self._shares)), 0) + here - 1e-6)

        return advance


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
    console: Console, *, quiet: bool, unit: str = "frames", count: RunCount | None = None
) -> Iterator[Watcher]:
    """Bar on a terminal, lines elsewhere, nothing when quiet; `unit` is what is counted, of a whole run by `count`."""
    if quiet:
        yield lambda _name: None
        return
    counted = count or RunCount({}, halves=False)
    with (_bar if console.is_terminal else _lines)(console, unit) as show:

        def watch(name: str) -> passes.Progress:
            advance = counted.begin(name)
            return lambda stage, done, total: show(
                f"{name}: {stage}", advance(stage, done, total), counted.total or total
            )

        yield watch


def count_of(discovery: Discovery, frames: Callable[[dict[str, int]], int], *, halves: bool = False) -> RunCount:
    """Count what a run does to all stacks found; `frames` tells of the sizes of a stack's axes how many it has."""
    counts = {}
    for spec in discovery.series:
        with spec.open() as source:
            counts[spec.name] = frames(source.sizes)
    return RunCount(counts, halves=halves)
