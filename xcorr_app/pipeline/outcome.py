"""What became of a stack, and of a run over many."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xcorr_app.pipeline.stages import Stages


@dataclass(frozen=True)
class Outcome:
    """What became of one stack, or of one file that is in none."""

    name: str
    facts: dict[str, Any] = field(default_factory=dict)
    """Timings and counts for ``run.json``; empty where `failure` is set."""
    result: Any = None
    """What the command shows of it."""
    failure: str | None = None
    flagged: bool = False
    """A part of it counts as failed."""
    resumed: bool = False
    """An earlier run had finished it."""
    inputs: dict[str, str] = field(default_factory=dict)
    """Checksums of its files, by path."""

    @property
    def failed(self) -> bool:
        """The stack, or a part of it, counts as failed."""
        return self.failure is not None or self.flagged


@dataclass(frozen=True)
class Run:
    """What a run did."""

    outcomes: tuple[Outcome, ...]
    record: Path
    stages: Stages
    report: Path | None = None
    """The page that shows it, where one was asked for."""

    @property
    def failed(self) -> bool:
        """Something failed, or is flagged as failed."""
        return any(outcome.failed for outcome in self.outcomes)

    @property
    def resumed(self) -> tuple[str, ...]:
        """Stacks that an earlier run had finished."""
        return tuple(outcome.name for outcome in self.outcomes if outcome.resumed)
