"""What a command says of its work on a stack: the options that decide it, what it would do, and what it made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from xcorr_app.decision import Decision
from xcorr_app.gpu.runtime.select import Device
from xcorr_app.io import Discovery, SeriesSpec
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.registration.stack.passes import Progress


class Options(Protocol):
    """Options of a command, as far as a run needs to know them."""

    def parameters(self) -> dict[str, Any]:
        """Everything that decides the results, as plain values: part of ``run.json`` and of what a resume compares."""


OptionsT_co = TypeVar("OptionsT_co", bound=Options, covariant=True)
ResultT = TypeVar("ResultT")

Watcher = Callable[[str], Progress | None]
"""Called with a stack's name when it begins; returns what is told of its progress."""


@dataclass(frozen=True)
class Plan(Generic[OptionsT_co]):
    """What a run would do: series, device, output folder."""

    discovery: Discovery
    device: Device
    inputs: tuple[Path, ...]
    out: Path
    options: OptionsT_co


@dataclass(frozen=True)
class Finished(Generic[ResultT]):
    """What a command made of one stack."""

    facts: dict[str, Any]
    """Timings and counts for ``run.json``."""
    outputs: list[Path]
    result: ResultT
    keep: Callable[[], dict[str, Any]] = dict
    """Called once the outputs are in place, by another thread: stores what is no plain value, and returns the plain
    values from which :meth:`Work.restored` makes the result again."""


class Work(Generic[ResultT]):
    """What one command does to a stack; made of a plan, by a class whose only argument that is."""

    program: str
    """As a user types it, such as ``xcorr align``."""
    less_memory = "use a machine with more"
    """What a user can do where memory ran out."""

    def files(self) -> dict[str, tuple[Path, ...]]:
        """Files besides the inputs that decide the results, by their name in ``run.json``."""
        return {}

    def outputs(self, name: str) -> list[Path]:
        """Files that the results of a stack of this name may have; removed before they are computed again."""
        raise NotImplementedError

    def decide(self, spec: SeriesSpec) -> Decision:
        """Say what would compute the results of a stack, and why."""
        raise NotImplementedError

    def ahead(self, spec: SeriesSpec, resources: StackResources) -> None:
        """Begin to read what `process` will need, while the stack before is computed; `process` meets errors again."""

    def process(self, spec: SeriesSpec, resources: StackResources) -> Finished[ResultT]:
        """Compute the results of a stack.

        Files begun through `resources` are completed, and sources opened through it closed, afterwards.
        """
        raise NotImplementedError

    def restored(self, name: str, record: dict[str, Any]) -> ResultT | None:
        """Return the result that the record of an earlier run speaks of; None where it cannot be used."""
        found: ResultT = record["facts"]
        return found

    def is_flagged(self, finished: Finished[ResultT]) -> bool:
        """Whether a part of a stack that was finished counts as failed."""
        return False
