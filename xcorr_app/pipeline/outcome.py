"""What became of a stack, and of a run over many."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic

from xcorr_app.pipeline.stages import Stages
from xcorr_app.pipeline.work import ResultT


@dataclass(frozen=True)
class Outcome(Generic[ResultT]):
    """What became of one stack, or of one file that is in none."""

    name: str
    facts: dict[str, Any] = field(default_factory=dict)
    """Timings and counts for ``run.json``; empty where `failure` is set."""
    result: ResultT | None = None
    failure: str | None = None
    flagged: bool = False
    """A part of it counts as failed."""
    resumed: bool = False
    """An earlier run had finished it."""

    @property
    def failed(self) -> bool:
        """The stack, or a part of it, counts as failed."""
        return self.failure is not None or self.flagged


@dataclass(frozen=True)
class Known(Generic[ResultT]):
    """A stack's outcome and the checksums of its input."""

    outcome: Outcome[ResultT]
    inputs: dict[str, str]


@dataclass(frozen=True)
class Run(Generic[ResultT]):
    """What a run did."""

    outcomes: tuple[Outcome[ResultT], ...]
    record: Path
    stages: Stages

    @property
    def failed(self) -> bool:
        """Something failed, or is flagged as failed."""
        return any(outcome.failed for outcome in self.outcomes)

    @property
    def resumed(self) -> tuple[str, ...]:
        """Stacks that an earlier run had finished."""
        return tuple(outcome.name for outcome in self.outcomes if outcome.resumed)
