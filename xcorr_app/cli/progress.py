"""Progress of a run: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import accumulate
from types import TracebackType
from typing import Protocol, Self

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
from xcorr_app.registration import passes

_LAST_STAGES = ("move",)
_SECONDS_BETWEEN_LINES = 10.0


class Display(Protocol):
    """Shows how far a run is."""

    def watch(self, name: str) -> passes.Progress | None:
        """Begin a stack; returns what is to be called with its progress."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class _Rate(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.0f} {self._unit}/s" if task.speed else "")


class RunCount:
    """Frames done in a run of many stacks, from what each stack tells of its stages.

    A stack whose frames are measured and then moved has half of each frame done by measuring. How many passes measuring
    takes is not known beforehand: passes after the first are not counted, so that the number never falls.
    """

    def __init__(self, frames: Mapping[str, int], *, halves: bool) -> None:
        self._frames, self._halves = frames, halves
        self._ends = dict(zip(frames, accumulate(frames.values()), strict=True))
        self._name, self._best = "", 0.0
        self.total = sum(frames.values())

    def begin(self, name: str) -> None:
        """Begin a stack; those before it are done."""
        self._name, self._best = name, 0.0

    def tell(self, stage: str, done: int, total: int) -> int:
        """Take in how far a stage is; returns the frames done in the whole run."""
        share = done / max(total, 1)
        if self._halves:
            share = 0.5 + share / 2 if stage in _LAST_STAGES else share / 2
        self._best = max(self._best, share)
        frames = self._frames.get(self._name, total)
        return int(self._ends.get(self._name, frames) - (1 - self._best) * frames)


class Bar:
    """A bar for the whole run, with rate and time left, that says what is done to which stack."""

    def __init__(self, console: Console, count: RunCount | None = None, unit: str = "frames") -> None:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(unit),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, console=console, transient=True)
        self._count = count

    def watch(self, name: str) -> passes.Progress:
        """Begin a stack."""
        count = self._count or RunCount({}, halves=False)
        count.begin(name)
        if not self._progress.task_ids:
            self._progress.add_task(name, total=count.total or None)
        (task,) = self._progress.task_ids

        def report(stage: str, done: int, total: int) -> None:
            shown = count.tell(stage, done, total)
            self._progress.update(task, completed=shown, total=count.total or total, description=f"{name}: {stage}")

        return report

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()


class Lines:
    """A line every few seconds, for runs that take that long."""

    def __init__(self, console: Console, count: RunCount | None = None, unit: str = "frames") -> None:
        self._console, self._unit, self._count = console, unit, count
        self._begun: float | None = None
        self._told = 0.0

    def watch(self, name: str) -> passes.Progress:
        """Begin a stack."""
        count = self._count or RunCount({}, halves=False)
        count.begin(name)

        def report(stage: str, done: int, total: int) -> None:
            now = time.monotonic()
            if self._begun is None:
                self._begun = self._told = now
            shown, of = count.tell(stage, done, total), count.total or total
            if now - self._told >= _SECONDS_BETWEEN_LINES and shown:
                self._told = now
                rate = shown / (now - self._begun)
                left = (of - shown) / rate
                line = f"{name}: {stage} {shown}/{of}, {rate:.0f} {self._unit}/s, {left:.0f} s left"
                self._console.print(line, markup=False, highlight=False, soft_wrap=True)

        return report

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to tidy up."""


class Silent:
    """Nothing is shown."""

    def watch(self, name: str) -> None:
        """Begin a stack."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to tidy up."""


def display_for(console: Console, *, quiet: bool, unit: str = "frames", count: RunCount | None = None) -> Display:
    """Bar on a terminal, lines elsewhere, nothing when quiet; `unit` is what is counted, of a whole run by `count`."""
    if quiet:
        return Silent()
    return Bar(console, count, unit) if console.is_terminal else Lines(console, count, unit)


def count_of(discovery: Discovery, frames: Callable[[dict[str, int]], int], *, halves: bool = False) -> RunCount:
    """Count what a run does to all stacks found; `frames` tells of the sizes of a stack's axes how many it has."""
    counts = {}
    for spec in discovery.series:
        with spec.open() as source:
            counts[spec.name] = frames(source.sizes)
    return RunCount(counts, halves=halves)
