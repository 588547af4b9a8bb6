"""Progress of a run: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
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

from xcorr_app.cli.printing.tables import timings_table
from xcorr_app.io import Discovery
from xcorr_app.pipeline.stages import Stages
from xcorr_app.registration.stack import passes

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
    takes is not known beforehand: passes after the first are not counted, so that the number never falls. One stack is
    moved while the next one is measured.
    """

    def __init__(self, frames: Mapping[str, int], *, halves: bool) -> None:
        self._frames, self._halves, self._names = frames, halves, list(frames)
        self._shares: dict[str, float] = {}
        self.total = sum(frames.values())

    def begin(self, name: str) -> Callable[[str, int, int], int]:
        """Begin a stack; what is returned takes in how far a stage of it is, and returns the frames done in the run."""
        before = self._names[: self._names.index(name)] if name in self._frames else []
        # The last one before it may still be moved, unless it never began: an earlier run had finished it.
        self._shares |= dict.fromkeys(before[:-1], 1.0)
        if before:
            self._shares.setdefault(before[-1], 1.0)
        self._shares[name] = 0.0

        def tell(stage: str, done: int, total: int) -> int:
            share = done / max(total, 1)
            if self._halves:
                share = 0.5 + share / 2 if stage in _LAST_STAGES else share / 2
            self._shares[name] = max(self._shares[name], share)
            known = list(self._shares.items())
            return round(sum(of_stack * self._frames.get(of_name, total) for of_name, of_stack in known) - 1e-6)

        return tell


class Bar:
    """A bar for the whole run, with rate and time left, that says what is done to which stack."""

    def __init__(
        self, console: Console, count: RunCount | None = None, unit: str = "frames", stages: Stages | None = None
    ) -> None:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(unit),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, console=console, auto_refresh=False)
        self._count, self._stages = count or RunCount({}, halves=False), stages
        self._live = Live(console=console, get_renderable=self._shown, transient=True)

    def watch(self, name: str) -> passes.Progress:
        """Begin a stack."""
        tell = self._count.begin(name)
        if not self._progress.task_ids:
            self._progress.add_task(name, total=self._count.total or None)
        (task,) = self._progress.task_ids

        def report(stage: str, done: int, total: int) -> None:
            of = self._count.total or total
            self._progress.update(task, completed=tell(stage, done, total), total=of, description=f"{name}: {stage}")

        return report

    def _shown(self) -> RenderableType:
        bar = self._progress.get_renderable()
        return bar if self._stages is None else Group(bar, timings_table(self._stages))

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()


class Lines:
    """A line every few seconds, for runs that take that long."""

    def __init__(
        self, console: Console, count: RunCount | None = None, unit: str = "frames", stages: Stages | None = None
    ) -> None:
        self._console, self._unit, self._stages = console, unit, stages
        self._count = count or RunCount({}, halves=False)
        self._begun: float | None = None
        self._told = 0.0

    def watch(self, name: str) -> passes.Progress:
        """Begin a stack."""
        tell = self._count.begin(name)

        def report(stage: str, done: int, total: int) -> None:
            now = time.monotonic()
            if self._begun is None:
                self._begun = self._told = now
            shown, of = tell(stage, done, total), self._count.total or total
            if now - self._told >= _SECONDS_BETWEEN_LINES and shown:
                self._told = now
                rate = shown / (now - self._begun)
                left = (of - shown) / rate
                line = f"{name}: {stage} {shown}/{of}, {rate:.0f} {self._unit}/s, {left:.0f} s left"
                self._console.print(line + self._longest(), markup=False, highlight=False, soft_wrap=True)

        return report

    def _longest(self) -> str:
        """The stages that took longest so far, where they are asked for."""
        times = [] if self._stages is None else sorted(self._stages.times(), key=lambda stage: -stage.held_up)
        longest = [f"{stage.name} {stage.held_up:.1f} s" for stage in times[:3] if stage.held_up > 0]
        return f"; {', '.join(longest)}" if longest else ""

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


def display_for(
    console: Console,
    *,
    quiet: bool,
    unit: str = "frames",
    count: RunCount | None = None,
    stages: Stages | None = None,
) -> Display:
    """Bar on a terminal, lines elsewhere, nothing when quiet; `unit` is what is counted, of a whole run by `count`.

    With `stages`, what each of them took so far is shown as well.
    """
    if quiet:
        return Silent()
    return (Bar if console.is_terminal else Lines)(console, count, unit, stages)


def count_of(discovery: Discovery, frames: Callable[[dict[str, int]], int], *, halves: bool = False) -> RunCount:
    """Count what a run does to all stacks found; `frames` tells of the sizes of a stack's axes how many it has."""
    counts = {}
    for spec in discovery.series:
        with spec.open() as source:
            counts[spec.name] = frames(source.sizes)
    return RunCount(counts, halves=halves)
