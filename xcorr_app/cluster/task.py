"""What a worker does: one stack, or a part of a large one, by the same code as without a cluster, from disk to disk.

Only names, checksums and words travel. Pixels, tables and pictures go to the output folder, which all workers and the
client see.
"""

from __future__ import annotations

import glob
import os
import platform
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from xcorr_app.cluster import kept_parts
from xcorr_app.cluster.blocks import Part, Replay, Session
from xcorr_app.cluster.kept_parts import KeptParts
from xcorr_app.errors import ClusterError
from xcorr_app.gpu.runtime.placement import same_device
from xcorr_app.gpu.runtime.select import Device
from xcorr_app.io import Checksums, Discovery, MemoryBudget, SeriesSpec, StackMetadata
from xcorr_app.io.container_paths import url_of
from xcorr_app.io.writing.atomic import remove_abandoned
from xcorr_app.io.writing.placed_planes import PlacedPlanes
from xcorr_app.pipeline.environment import own_version
from xcorr_app.pipeline.resources import Resources, StackResources
from xcorr_app.pipeline.run import compute_stacks
from xcorr_app.pipeline.state import begun_folder, checksums
from xcorr_app.pipeline.work import Options, Plan, Work
from xcorr_app.registration.one_blas_thread import one_blas_thread
from xcorr_app.registration.stack.passes import Pass, sharing

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

    def places_planes(self) -> bool:
        """Whether planes are written, each to its place, once they are measured."""

    def walks_on(self) -> bool:
        """Whether there are passes once frames are measured: planes are written, or drawn."""


@one_blas_thread()
def compute_stack(job: Job, spec: SeriesSpec, known: Sequence[Part] | None = None, key: str = "") -> Told:
    """Compute one stack on a worker; what is `known` of all its passes was computed in parts, kept under a `key`."""
    host = _begun(job, spec.name)
    with _ONE_AT_A_TIME:
        device, plan, work = _planned(job, spec)
        if known and known[0].of[0] != (device.xp is not np):
            known = None  # they were computed on another kind of device
        for path in work.outputs(spec.name):
            # Of a worker that was killed in mid-task.
            remove_abandoned(path)
        root = begun_folder(job.out, spec.name)
        begun = kept_parts.folder_of(root, key)
        if known and known[-1].stage == MOVE and isinstance(work, MeasuresInBlocks) and work.places_planes():
            # A run that was killed may have brought the planes to their place already.
            names = [glob.escape(path.name) for path in work.outputs(spec.name)]
            known = known if any(list(begun.glob(f"{name}*")) for name in names) else known[:-1]
        if known:
            replayed: Any = _Known(work, known, root, begun)
            work = replayed
        else:
            kept_parts.remove(root)
        files = {name: checksums(paths) for name, paths in work.files().items()}
        resources = Resources(MemoryBudget(job.memory), job.compression, pyramid=job.pyramid)
        (found,) = compute_stacks(plan, work, resources, files, resume=job.resume, stop_at_defects=job.stop_at_defects)
        kept_parts.remove(root)
    outcome = found.outcome
    return Told(outcome.failure, outcome.resumed, found.inputs, device.description, host)


def described(job: Job, spec: SeriesSpec, key: str) -> tuple[Job, SeriesSpec, str]:
    """What all parts have in common, as a task of its own: then it travels once, and is told again if it is lost."""
    return job, spec, key


def number_of_blocks(job: Job, spec: SeriesSpec) -> tuple[bool, int]:
    """Whether a worker would measure a stack on a device, and in how many blocks; 0 where it cannot be divided."""
    with _ONE_AT_A_TIME:
        device, _, work = _planned(job, spec)
        frames = work.measured_frames(spec) if isinstance(work, MeasuresInBlocks) else None
        on_device = device.xp is not np
        return on_device, 0 if frames is None else Pass(*frames, on_device=on_device).blocks


@one_blas_thread()
def measure_part(of: tuple[Job, SeriesSpec, str], known: Sequence[Part], part: int, parts: int) -> Part:
    """Compute one of so many parts of the pass over a stack that follows those that are `known`."""
    job, spec, key = of
    with _ONE_AT_A_TIME:
        begin = time.perf_counter()
        device = job.choose_device(job.options)
        host = _begun(job, f"{spec.name}, pass {len(known)}, part {part} of {parts}", device)
        for path in spec.paths:
            if url_of(path) is None and not path.exists():
                raise ClusterError(f"worker {host} does not see {path}: all must see it under this name")
        folder = kept_parts.folder_of(begun_folder(job.out, spec.name), key)
        kept = KeptParts(folder, key, len(known), device.description, resume=job.resume)
        session, checksums = _session(job, spec, folder, len(known))
        if known:
            # The first pass has read all frames.
            checksums.stop()
        found = session.part(known, part, parts, kept)
        return replace(found, read=checksums.news(), seconds=time.perf_counter() - begin)


class _Known:
    """Work of whose only stack it is `known` what its passes come to; planes may be placed in a folder."""

    def __init__(self, work: Work[Any], known: Sequence[Part], root: Path, begun: Path) -> None:
        self._work, self._parts, self._replay, self._root = work, known, Replay(known), root
        self._is_moved = known[-1].stage == MOVE
        shared = work if isinstance(work, MeasuresInBlocks) else None
        self._begun = begun if self._is_moved and shared is not None and shared.places_planes() else None
        self._is_read = not self._is_moved and shared is not None and shared.walks_on()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)

    def outputs(self, name: str) -> list[Path]:
        """Files that are removed before: not what others have begun."""
        return [path for path in self._work.outputs(name) if path != self._root]

    def ahead(self, spec: SeriesSpec, resources: StackResources) -> None:
        """Read ahead what is read at all."""
        if self._is_read:
            self._work.ahead(spec, resources)

    def process(self, spec: SeriesSpec, resources: StackResources) -> Any:
        """Do what the work does."""
        resources.placed, resources.is_shared = self._begun, not self._is_read
        for part in self._parts:
            resources.checksums.learn(part.read)
        with sharing(self._replay):
            return self._work.process(spec, resources)


class _PartResources(StackResources):
    """Of a worker that computes parts of a stack."""

    def __init__(self, job: Job, folder: Path, checksums: Checksums) -> None:
        super().__init__(Resources(MemoryBudget(0)), checksums)
        self.is_shared = True
        self._job, self._folder = job, folder

    def writer(self, path: Path, metadata: StackMetadata) -> Any:
        """Return what writes planes to their places."""
        job = self._job
        return PlacedPlanes(path, metadata, self._folder, compression=job.compression, pyramid=job.pyramid)


def end_sessions() -> None:
    """Give up the stack that parts are computed of."""
    while _OPEN:
        _OPEN.popitem()[1][0].end()


_OPEN: dict[tuple[str, str], tuple[Session, Checksums]] = {}
"""The session of this worker, one at most, by run and stack; and checksums of what it reads."""


def _session(job: Job, spec: SeriesSpec, folder: Path, number: int) -> tuple[Session, Checksums]:
    """The session of a stack, which has not gone beyond the pass of a number."""
    key = job.run, spec.name
    if key in _OPEN and _OPEN[key][0].can_go_on_to(number):
        return _OPEN[key]
    end_sessions()
    checksums = Checksums.of_parts(spec.paths)
    device, _, work = _planned(job, spec)
    there = same_device(device.xp)

    def run() -> None:
        there()
        resources = _PartResources(job, folder, checksums)
        try:
            work.process(spec, resources)
        finally:
            resources.abandon()

    _OPEN[key] = Session(run), checksums
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
    device = replace(job.choose_device(job.options), is_asked_for=True)  # another worker may have one that works
    plan = Plan(Discovery(spec.layout, (spec,), ()), device, (), job.out, job.options)
    return device, plan, job.work(plan)
