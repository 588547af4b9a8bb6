"""A command as a run over stacks sees it: what it finds, refuses, does to one stack, and what became of that."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from xcorr_app.decision import Decision
from xcorr_app.errors import XcorrError
from xcorr_app.gpu.runtime.select import OF_WORKERS, Device, select_device
from xcorr_app.io import Checksums, Discovery, SeriesSpec, discover, make_folder
from xcorr_app.pipeline.output import check_output
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.pipeline.stages import Stages, versions
from xcorr_app.pipeline.state import RunRequest, State, asked_of
from xcorr_app.registration.stack.passes import Progress


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


def reason_of(error: Exception, less_memory: str) -> str:
    """Say why a stack failed; `less_memory` is what a user can do where memory ran out."""
    if isinstance(error, XcorrError):
        return str(error)
    if isinstance(error, MemoryError):
        return f"needs more memory than there is; {less_memory}"
    return f"the program failed with {type(error).__name__}: {error}; this is a defect, --debug shows where it is"


Watcher = Callable[[str], Progress | None]
"""Called with a stack's name when it begins; returns what takes in its progress."""
Facts = dict[str, Any]
"""What is known of a stack, for ``run.json``: counts, times, notes."""


OptionsT = TypeVar("OptionsT")


@dataclass(frozen=True)
class StackResult:
    """What a command made of one stack."""

    facts: Facts
    outputs: list[Path]
    result: Any
    pictures: Any = None
    """What is drawn of it."""


@dataclass(frozen=True, eq=False)
class Work(Generic[OptionsT]):
    """What one command does to the stacks that were found."""

    discovery: Discovery
    device: Device
    inputs: tuple[Path, ...]
    out: Path
    options: OptionsT
    stacks: int = 0
    """Of the whole run, and files that are in none: a worker of a cluster has one of them."""
    notes: tuple[str, ...] = ()
    """What users should know of how all stacks are computed."""

    program: ClassVar[str]
    """As a user types it, such as ``xcorr align``."""
    less_memory: ClassVar[str] = "use a machine with more"
    """What a user can do where memory ran out."""

    @classmethod
    def chosen_device(cls, options: Any) -> Device:
        """Choose where to compute, and refuse what cannot run there."""
        return select_device(options.device)

    @classmethod
    def found(cls, inputs: Sequence[Path], options: Any) -> Discovery:
        """Find the stacks."""
        channel = getattr(options, "single_channel", getattr(options, "channel", None))
        return discover(inputs, options.layout, options.limits, channel=channel)

    def checked(self) -> Self:
        """Refuse work that cannot be carried out; what comes back is carried out."""
        return self

    def on_cpu(self, note: str) -> Self:
        """The same where the CPU computes in the place of a device, and a note that says so."""
        moved = replace(self, device=Device(np, "CPU"), notes=(*self.notes, note))
        vars(moved)["checksums"] = self.checksums  # of the bytes that the run began with
        return moved

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Everything that decides the results, as plain values: part of ``run.json`` and of what a resume compares."""
        options: Any = self.options
        return dict(options.parameters())

    @property
    def asked(self) -> RunRequest:
        """What the output folder says that it was asked for."""
        return asked_of(self.program, self.parameters, self.inputs)

    @property
    def state(self) -> State:
        """What the output folder holds."""
        return State(self.out)

    @cached_property
    def checksums(self) -> dict[str, dict[str, str]]:
        """Of the files besides the inputs that decide the results, by their paths and their name in ``run.json``."""
        return {name: Checksums(paths).finished() for name, paths in self.files().items()}

    def fingerprint(self, inputs: dict[str, str]) -> str:
        """One checksum of all that decides the results of a stack of these inputs."""
        besides = {path: checksum for of_name in self.checksums.values() for path, checksum in of_name.items()}
        where = {"device": self.device.description}
        whole = [{"program": self.program} | self.parameters, inputs | besides, versions() | where]
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()

    def files(self) -> dict[str, tuple[Path, ...]]:
        """Files besides the inputs that decide the results, by their name in ``run.json``."""
        options: Any = self.options
        return dict(options.files())

    def outputs(self, name: str) -> list[Path]:
        """Files that the results of a stack of this name may have; removed before they are computed again."""
        raise NotImplementedError

    def decide(self, spec: SeriesSpec) -> Decision:
        """Say what would compute the results of a stack, and why."""
        raise NotImplementedError

    def begin(self, spec: SeriesSpec, resources: StackResources, *, ahead: bool = False) -> Any:
        """Open a stack and begin to read it; None where that is not to be done `ahead`, while another is computed."""

    def process(self, spec: SeriesSpec, resources: StackResources, opened: Any) -> StackResult:
        """Compute the results of a stack as `begin` has `opened` it.

        Files begun through `resources` are completed, and sources opened through it closed, afterwards.
        """
        raise NotImplementedError

    def draw(self, done: StackResult, resources: StackResources) -> Facts:
        """Draw more outputs, in another thread, before they are in place.

        Returns the plain values from which `restored` makes the result again.
        """
        return {}

    def restored(self, name: str, record: dict[str, Any]) -> Any:
        """Return the result that the record of an earlier run speaks of; None where it cannot be used."""
        return record["facts"]

    def is_flagged(self, result: Any) -> bool:
        """Whether a part of a stack that was finished counts as failed."""
        return False

    def report(self, outcomes: Sequence[Outcome], stages: Stages) -> Path | None:
        """Write the page that shows all stacks, where there is one."""


class OneFile(Work[OptionsT]):
    """Makes one file of each stack."""

    done: ClassVar[str]
    """What becomes of stacks: ends the name of their files."""

    def outputs(self, name: str) -> list[Path]:
        """See `Work`."""
        return [self.out / name / f"{name}_{self.done}.tif"]

    def target(self, name: str) -> Path:
        """The file, whose folder is there."""
        (path,) = self.outputs(name)
        make_folder(path.parent)
        return path


WorkT = TypeVar("WorkT", bound=Work[Any])


def plan_stacks(
    kind: type[WorkT],
    inputs: Sequence[Path],
    out: Path,
    options: Any,
    *,
    found: Discovery | None = None,
    elsewhere: bool = False,
) -> WorkT:
    """Choose the device, find the stacks unless they are `found`, check the output folder; nothing is written.

    With `elsewhere`, workers choose their devices.
    """
    device = OF_WORKERS if elsewhere else kind.chosen_device(options)
    work = kind(found or kind.found(inputs, options), device, tuple(inputs), out, options)
    how = {"resume": options.resume, "overwrite": options.overwrite}
    check_output(out, work.discovery, list(inputs), work.asked, **how)
    work = work.checked()
    return replace(work, stacks=len(work.discovery.series) + len(work.discovery.failures))
