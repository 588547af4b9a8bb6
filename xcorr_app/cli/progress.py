"""Progress of a run: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from xcorr_app.registration import passes

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


class Bar:
    """A bar a stage, with rate and time left; finished ones disappear."""

    def __init__(self, console: Console, unit: str = "frames") -> None:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(unit),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, console=console, transient=True)

    def watch(self, name: str) -> passes.Progress:
        """Begin a stack."""
        tasks: dict[str, TaskID] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = self._progress.add_task(f"{name}: {stage}", total=total)
            self._progress.update(tasks[stage], completed=done, visible=done < total)
            if done >= total:
                del tasks[stage]

        return report

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()


class Lines:
    """A line every few seconds, for stages that take that long."""

    def __init__(self, console: Console, unit: str = "frames") -> None:
        self._console, self._unit = console, unit

    def watch(self, name: str) -> passes.Progress:
        """Begin a stack."""
        begun: dict[str, float] = {}
        told: dict[str, float] = {}

        def report(stage: str, done: int, total: int) -> None:
            now = time.monotonic()
            if done == 0:
                begun[stage] = told[stage] = now
                return
            if now - told[stage] >= _SECONDS_BETWEEN_LINES:
                told[stage] = now
                rate = done / (now - begun[stage])
                left = (total - done) / rate
                line = f"{name}: {stage} {done}/{total}, {rate:.0f} {self._unit}/s, {left:.0f} s left"
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


def display_for(console: Console, *, quiet: bool, unit: str = "frames") -> Display:
    """Bar on a terminal, lines elsewhere, nothing when quiet; `unit` is what is counted."""
    if quiet:
        return Silent()
    return Bar(console, unit) if console.is_terminal else Lines(console, unit)
