"""What a worker does: one stack, or a part of a large one, by the same code as without a cluster, from disk to disk.

Only names, checksums and words travel. Pixels, tables and pictures go to the output folder, which all workers and the
client see.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from xcorr_app.cluster.blocks import Part, Replay, Session
from xcorr_app.errors import ClusterError
from xcorr_app.gpu.runtime.placement import same_device
from xcorr_app.gpu.runtime.select import Device
from xcorr_app.io import Checksums, Discovery, MemoryBudget, SeriesSpec, StackMetadata
from xcorr_app.io.atomic import begun_path, remove_abandoned
from xcorr_app.io.placed_planes import PlacedPlanes
from xcorr_app.io.within import url_of
from xcorr_app.pipeline.environment import own_version
from xcorr_app.pipeline.resources import Resources, StackResources
from xcorr_app.pipeline.run import compute_stacks
from xcorr_app.pipeline.state import checksums
from xcorr_app.pipeline.work import Options, Plan, Work
from xcorr_app.registration.passes import Pass, sharing

MOVE = "move"
"""Stage of the pass that moves planes and writes them."""
BEGUN = "xcorr-begun"
"""Topic of the event by which a worker says that it begins a task: of one that dies nothing else is known."""

_ONE_AT_A_TIME = threading.Lock()
"""A stack takes all cores, and the device, of its process."""


@dataclass(frozen=True)
class Job:
    """What all tasks of a run have in common."""

    work: Callable[[Plan[Any]], Work[Any]]
    choose_device: Callable[[Any], Device]
    """Of the options; asked on the worker."""
    options: Options
    out: Path
    memory: int
    compression: str | None
    pyramid: int
    resume: bool
    stop_at_defects: bool
    run: str
    """A name that no other run has."""
    version: str
    """Of the client's program: another one might give other results."""


@dataclass(frozen=True)
class Told:
    """What became of a stack, in a few words."""

    failure: str | None
    resumed: bool
    inputs: dict[str, str]
    device: str
    host: str


@runtime_checkable
class MeasuresInBlocks(Protocol):
    """Work whose `process` measures frames in passes over the stack, which workers can share."""

    def measured_frames(self, spec: SeriesSpec) -> tuple[int, int] | None:
        """Number of frames, and pixels of one; None where passes are not to be shared."""

    def places_planes(self, spec: SeriesSpec) -> bool:
        """Whether all that is left to do once they are measured is to write planes, each to a place that is known."""


def compute_stack(job: Job, spec: SeriesSpec, known: Sequence[Part] | None = None) -> Told:
    """Compute one stack on a worker; what is `known` of all its passes was computed in parts."""
    host = _begun(job, spec.name)
    with _ONE_AT_A_TIME:
        device, plan, work = _planned(job, spec)
        if known and known[0].of[0] != (device.xp is not np):
            known = None  # they were computed on another kind of device
        outputs = work.outputs(spec.name)
        placed = bool(known) and any(begun_path(path, job.run).exists() for path in outputs)
        for path in outputs:
            # Of a worker that was killed in mid-task.
            remove_abandoned(path, job.run if placed else None)
        if known:
            work = _Known(work, known, job.run if placed else None)
        files = {name: checksums(paths) for name, paths in work.files().items()}
        resources = Resources(MemoryBudget(job.memory), job.compression, pyramid=job.pyramid)
        (found,) = compute_stacks(plan, work, resources, files, resume=job.resume, stop_at_defects=job.stop_at_defects)
    outcome = found.outcome
    return Told(outcome.failure, outcome.resumed, found.inputs, device.description, host)


def described(job: Job, spec: SeriesSpec) -> tuple[Job, SeriesSpec]:
    """What all parts have in common, as a task of its own: then it travels once, and is told again if it is lost."""
    return job, spec


def number_of_blocks(job: Job, spec: SeriesSpec) -> int:
    """How many blocks a stack would be measured in on a worker's device; 0 where it cannot be divided."""
    with _ONE_AT_A_TIME:
        device, _, work = _planned(job, spec)
        frames = work.measured_frames(spec) if isinstance(work, MeasuresInBlocks) else None
        return 0 if frames is None else Pass(*frames, on_device=device.xp is not np).blocks


def measure_part(of: tuple[Job, SeriesSpec], known: Sequence[Part], part: int, parts: int) -> Part:
    """Compute one of so many parts of the pass over a stack that follows those that are `known`."""
    job, spec = of
    with _ONE_AT_A_TIME:
        host = _begun(job, f"{spec.name}, pass {len(known)}, part {part} of {parts}", job.choose_device(job.options))
        for path in spec.paths:
            if url_of(path) is None and not path.exists():
                raise ClusterError(f"worker {host} does not see {path}: all must see it under this name")
        return _session(job, spec, len(known)).part(known, part, parts)


class _Known:
    """Work of whose only stack it is `known` what its passes come to; planes are placed in a file of that mark."""

    def __init__(self, work: Work[Any], known: Sequence[Part], mark: str | None) -> None:
        self._work, self._mark = work, mark
        self._replay = Replay([part for part in known if mark is not None or part.stage != MOVE])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)

    def process(self, spec: SeriesSpec, resources: StackResources) -> Callable[[], Any]:
        """Do what the work does."""
        resources.placed = self._mark
        with sharing(self._replay):
            rest = self._work.process(spec, resources)

        def follow() -> Any:
            with sharing(self._replay):
                return rest()

        return follow


class _PartResources(StackResources):
    """Of a worker that computes parts of a stack: what would be kept, or read ahead, would be the whole of it."""

    def __init__(self, mark: str) -> None:
        super().__init__(Resources(MemoryBudget(0)), Checksums(()))
        self._mark = mark

    @staticmethod
    def fits_on_device(size: int) -> bool:
        """Never: only the frames of its parts go there."""
        return size < 0

    def writer(self, path: Path, metadata: StackMetadata) -> Any:
        """Return what writes planes to their places."""
        return PlacedPlanes(path, metadata, self._mark)


def end_sessions() -> None:
    """Give up the stack that parts are computed of."""
    while _OPEN:
        _OPEN.popitem()[1].end()


_OPEN: dict[tuple[str, str], Session] = {}
"""The session of this worker, one at most, by run and stack."""


def _session(job: Job, spec: SeriesSpec, number: int) -> Session:
    """The session of a stack, which has not gone beyond the pass of a number."""
    key = job.run, spec.name
    if key in _OPEN and _OPEN[key].can_go_on_to(number):
        return _OPEN[key]
    end_sessions()
    device, _, work = _planned(job, spec)
    there = same_device(device.xp)

    def run() -> None:
        there()
        resources = _PartResources(job.run)
        try:
            rest = work.process(spec, resources)
            if job.compression is None and isinstance(work, MeasuresInBlocks) and work.places_planes(spec):
                rest()
        finally:
            resources.abandon()

    _OPEN[key] = Session(run)
    return _OPEN[key]


def _begun(job: Job, name: str, device: Device | None = None) -> str:
    """Say that a task is begun, on a device that is known where it is a part; returns the name of this machine."""
    from distributed import get_worker

    host = platform.node()
    said = {"stack": name, "host": host, "pid": os.getpid()}
    get_worker().log_event(BEGUN, said if device is None else said | {"device": device.description})
    if own_version() != job.version:
        raise ClusterError(f"worker {host} has xcorr {own_version()}, the client {job.version}: install the same")
    return host


def _planned(job: Job, spec: SeriesSpec) -> tuple[Device, Plan[Any], Work[Any]]:
    device = job.choose_device(job.options)
    plan = Plan(Discovery(spec.layout, (spec,), ()), device, (), job.out, job.options)
    return device, plan, job.work(plan)
