"""What a run lends to its stacks: memory to keep frames in, threads that read ahead, files completed later, a clock."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from xcorr_app.gpu.runtime.memory import free_bytes
from xcorr_app.gpu.runtime.upload import Uploader
from xcorr_app.io import Checksums, HeldSource, MemoryBudget, Source, StackMetadata, atomic_write_text
from xcorr_app.io.outputs import Writer, new_writer
from xcorr_app.pipeline.device_frames import DeviceFrames, HostFrames
from xcorr_app.pipeline.stages import Stages
from xcorr_app.registration.frames import Frames
from xcorr_app.registration.passes import Progress, worker_count

_LARGEST_DEFAULT = 1 << 30
_SHARE_OF_MEMORY = 8
_MOST_READERS = 8


def default_memory() -> int:
    """Bytes that stacks are kept in where nothing else is said: an eighth of the machine's memory, at most 1 GiB."""
    try:
        installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return _LARGEST_DEFAULT // 4
    return min(_LARGEST_DEFAULT, installed // _SHARE_OF_MEMORY)


@dataclass(frozen=True)
class Resources:
    """Of a whole run."""

    memory: MemoryBudget = field(default_factory=lambda: MemoryBudget(default_memory()))
    """In which stacks are kept that fit, so that each of their frames is read once."""
    compression: str | None = None
    """Of TIFF files that are written."""
    stages: Stages = field(default_factory=Stages)
    pyramid: int = 1
    """Levels of OME-Zarr images that are written."""


def _device_share() -> int:
    """Bytes of the device's memory that frames of a stack may stay in."""
    return free_bytes() // 4


class StackResources:
    """Of one stack."""

    def __init__(self, run: Resources, checksums: Checksums, progress: Progress | None = None) -> None:
        self.progress, self.checksums, self.stages = progress, checksums, run.stages
        self.seconds: dict[str, float] = {}
        """Of the steps of this stack."""
        self.notes: list[str] = []
        """What a user should know of how it went."""
        self._run = run
        self._writers: list[Writer] = []
        self._texts: list[tuple[Path, str]] = []

    def open(self, source: Source, *, once: bool = False) -> HeldSource:
        """The stack, opened, with checksums taken as it is read; where memory allows, threads begin to read it.

        With `once`, its planes are needed once only: it is kept, to be read ahead, where it takes little memory.
        """
        metadata = source.metadata
        large = once and metadata.planes * metadata.plane_bytes > self._run.memory.limit // 4
        budget = MemoryBudget(0) if large else self._run.memory
        held = HeldSource(source, budget, self.checksums, self.stages.meter)
        held.read_ahead(max(1, min(_MOST_READERS, worker_count() // 2)))
        return held

    @contextmanager
    def on_device(self, frames: HostFrames, xp: Any) -> Iterator[Frames]:
        """Frames for an array module: with CuPy, read and uploaded ahead; with NumPy, as they are."""
        if xp is np:
            yield frames
            return
        uploader = Uploader()
        readers = max(1, min(_MOST_READERS, worker_count() // 2))
        meter = self.stages.meter
        with DeviceFrames(
            frames, uploader, threads=readers, may_keep=_device_share, meter=meter, waited=self.stages.waited
        ) as there:
            yield there
        self.notes += uploader.notes

    def writer(self, path: Path, metadata: StackMetadata) -> Writer:
        """Return a writer whose file is completed together with the stack."""
        return new_writer(
            path,
            metadata,
            compression=self._run.compression,
            pyramid=self._run.pyramid,
            later=self._writers.append,
            meter=self.stages.meter,
        )

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time a step of the stack."""
        begin = time.perf_counter()
        with self.stages.step(name):
            yield
        self.seconds[name] = round(time.perf_counter() - begin, 3)

    def write_text(self, path: Path, text: str) -> None:
        """Write a file together with the others of the stack; where the stack fails, at least that."""
        self._texts.append((path, text))

    def complete_texts(self) -> None:
        """Write them now."""
        while self._texts:
            atomic_write_text(*self._texts.pop(0))

    def complete(self) -> None:
        """Bring the files begun to the disk and give them their names."""
        self.complete_texts()
        while self._writers:
            self._writers[0].complete()
            self._writers.pop(0)

    def abandon(self) -> None:
        """Leave nothing of the files begun."""
        while self._writers:
            self._writers.pop(0).abandon()
