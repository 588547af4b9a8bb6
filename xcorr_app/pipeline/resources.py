"""What a run lends to its stacks: memory to keep frames in, threads that read ahead, files completed later, a clock."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from xcorr_app.gpu.runtime.memory import attempt, bytes_within_limit
from xcorr_app.gpu.runtime.upload import Uploader
from xcorr_app.io import Checksums, HeldSource, MemoryBudget, Source, StackMetadata, atomic_write_bytes
from xcorr_app.io.checksum import checksum_of_bytes
from xcorr_app.io.outputs import Writer, new_writer
from xcorr_app.io.writing.written_planes import BYTES_WAITING
from xcorr_app.pipeline.planes import HostPlanes
from xcorr_app.pipeline.stack_upload import DeviceFrames, StackUpload
from xcorr_app.pipeline.stages import Stages
from xcorr_app.registration.stack.frames import Frames
from xcorr_app.registration.stack.passes import Progress
from xcorr_app.system import worker_count

_MAX_READERS = 16
_OF_PLAIN = 3
"""Threads that read one file as it is stored: one reads, one computes, one uploads."""


_LARGEST_DEFAULT, _PLAIN_DEFAULT = 1 << 30, 1 << 26
_SHARE_OF_MEMORY = 8
_SHARE_OF_DEVICE = 4
_WAITING_FROM_DEVICE = 1 << 28
"""Bytes of a stack that may wait to be written of what a device has computed: it is faster than a disk, by fits and
starts. Up to eleven stacks are on their way at a time, so that it is at most this share of the machine's memory."""
_SHARE_THAT_WAITS = 256


def default_memory() -> MemoryBudget:
    """What stacks are kept in where nothing else is said: an eighth of the machine's memory, at most 1 GiB.

    Of a single plain TIFF of more than 64 MiB, a CPU reads frames again in place of keeping them.
    """
    return MemoryBudget(min(_LARGEST_DEFAULT, _installed() // _SHARE_OF_MEMORY), _PLAIN_DEFAULT)


def _installed() -> int:
    """Bytes of memory of the machine; 2 GiB where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 2 << 30


class Resources:
    """Of a whole run.

    Parameters
    ----------
    memory
        In which stacks are kept that fit, so that each of their frames is read once.
    compression
        Of TIFF files that are written.
    pyramid
        Levels of OME-Zarr images that are written.
    """

    def __init__(self, memory: MemoryBudget, compression: str | None = None, pyramid: int = 1) -> None:
        self.memory, self.compression, self.pyramid = memory, compression, pyramid
        self.stages = Stages()
        self._lock = threading.Lock()
        self._uploads: tuple[Uploader, ThreadPoolExecutor] | None = None

    def uploads(self) -> tuple[Uploader, ThreadPoolExecutor]:
        """What brings frames to the current device, and the threads that read stacks, in order.

        Made when the first stack is read for a device; kept until the end of the run, with its pinned memory.
        """
        with self._lock:
            if self._uploads is None:
                uploader = Uploader()
                how: Any = {"thread_name_prefix": "xcorr-read", "initializer": uploader.use}
                self._uploads = uploader, ThreadPoolExecutor(max(1, min(_MAX_READERS, worker_count())), **how)
            return self._uploads

    @property
    def uses_device(self) -> bool:
        """Whether frames are brought to a device."""
        return self._uploads is not None

    def close(self) -> None:
        """End the threads; what they have not begun is not done."""
        with self._lock:
            if self._uploads is not None:
                self._uploads[1].shutdown(cancel_futures=True)
            self._uploads = None


HostT = TypeVar("HostT", bound=HostPlanes)


class StackResources:
    """Of one stack."""

    def __init__(self, run: Resources, checksums: Checksums) -> None:
        self.checksums, self.stages = checksums, run.stages
        self._progress: Progress | None = None
        self._check: Callable[[], None] | None = None
        self.seconds: dict[str, float] = {}
        """Of the steps of this stack."""
        self.notes: list[str] = []
        """What a user should know of how it went."""
        self._run = run
        self._writers: list[Writer] = []
        self._files: list[tuple[Path, bytes]] = []
        self._opened = ExitStack()

    def watched(self, progress: Progress | None, check: Callable[[], None]) -> None:
        """Tell of the stack's progress from now on, and ask whether to go on."""
        self._progress, self._check = progress, check

    def progress(self, stage: str, done: int, total: int) -> None:
        """Take in how far a stage is; raises Interruption where the run was interrupted."""
        if self._check is not None:
            self._check()
        if self._progress is not None:
            self._progress(stage, done, total)

    def open(self, source: Source, *, once: bool = False, elsewhere: bool = False) -> HeldSource:
        """The stack, opened, with checksums taken as it is read; where memory allows, threads begin to read it.

        It is closed with the stack's other resources. With `once`, its planes are needed once only: it is kept, to be
        read ahead, where it takes little memory; with `elsewhere` it is not, since its frames stay on the device or are
        cheap to read again.
        """
        metadata = source.metadata
        size = metadata.planes * metadata.plane_bytes
        needless = elsewhere or (once and size > self._run.memory.limit // 4)
        budget = MemoryBudget(0) if needless else self._run.memory
        held = self._opened.enter_context(HeldSource(source, budget, self.checksums, self.stages.meter))
        held.read_ahead(max(1, min(_MAX_READERS, worker_count()) // 2))  # half of the cores
        return held

    @staticmethod
    def fits_on_device(size: int) -> bool:
        """Whether so many bytes of frames may stay on the device, beside what measuring them takes."""
        return size <= bytes_within_limit() // _SHARE_OF_DEVICE

    def begin(self, frames: HostT, xp: Any, *, once: bool = False, ahead: bool = False) -> HostT | None:
        """Open the stack of frames and begin to read them; with `ahead`, only if a device has room for all of it.

        With `once`, they are needed once only.
        """
        metadata = frames.source.metadata
        size = metadata.planes * metadata.plane_bytes
        # Frames that are all there is of the stack are kept once: where they are worked on.
        alone = xp is not np and frames.count == metadata.planes and self.fits_on_device(size)
        if ahead and not alone:
            return None
        is_cheap = xp is np and not once and frames.is_plain and size > self._run.memory.plain
        frames = replace(frames, source=self.open(frames.source, once=once, elsewhere=alone or is_cheap))
        return frames if xp is np else replace(frames, uploaded=self.on_device(frames, xp))

    def on_device(self, frames: HostPlanes, xp: Any) -> Frames:
        """Frames for an array module: with CuPy, read and uploaded ahead; with NumPy, as they are.

        On the device they stay there, if they fit, until the stack's other resources are given back.
        """
        if xp is np:
            return frames
        uploader, readers = self._run.uploads()
        self._opened.callback(lambda: self.notes.extend(note for note in uploader.notes if note not in self.notes))
        how: Any = {"side_by_side": _OF_PLAIN if frames.is_plain else _MAX_READERS, "waited": self.stages.waited}
        upload: Callable[..., StackUpload] = partial(
            StackUpload, carrier=uploader, readers=readers, meter=self.stages.meter, **how
        )
        size = frames.count * frames.shape[0] * frames.shape[1] * frames.read_dtype.itemsize
        if self.fits_on_device(size):
            for whole in attempt(lambda: upload(frames)):
                return self._opened.enter_context(whole)
        return self._opened.enter_context(DeviceFrames(frames, upload))

    def writer(self, path: Path, metadata: StackMetadata) -> Writer:
        """Return a writer whose file is completed together with the stack."""
        waiting = BYTES_WAITING
        if self._run.uses_device:
            waiting = max(waiting, min(_WAITING_FROM_DEVICE, _installed() // _SHARE_THAT_WAITS))
        return new_writer(
            path,
            metadata,
            compression=self._run.compression,
            pyramid=self._run.pyramid,
            later=self._writers.append,
            meter=self.stages.meter,
            waiting=waiting,
            waited=self.stages.waited,
        )

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time a step of the stack."""
        begin = time.perf_counter()
        with self.stages.step(name):
            yield
        self.seconds[name] = round(time.perf_counter() - begin, 3)

    def write_bytes(self, path: Path, content: bytes) -> None:
        """Write a file together with the others of the stack, or not at all."""
        self._files.append((path, content))

    def close(self) -> None:
        """Close what was opened to be read, and give its memory back."""
        self._opened.close()

    def complete(self) -> dict[Path, str]:
        """Bring the files begun to the disk and give them their names; returns checksums as far as they are known."""
        known: dict[Path, str] = {}
        while self._files:
            path, content = self._files.pop(0)
            atomic_write_bytes(path, content)
            known[path] = checksum_of_bytes(content)
        while self._writers:
            self._writers[0].complete()
            self._writers.pop(0)
        return known

    def abandon(self) -> None:
        """Leave nothing of the files begun."""
        self._files.clear()
        self.close()
        while self._writers:
            self._writers.pop(0).abandon()
