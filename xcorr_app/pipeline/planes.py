"""Planes of a stack as frames, where they are worked on: in host memory, or on a device."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, TypeVar

import numpy as np

from xcorr_app.errors import DeviceMemoryError, InputError
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.gpu.runtime.download import download_in_parts
from xcorr_app.gpu.runtime.memory import release_unused
from xcorr_app.io import HeldSource, MemoryBudget, Source
from xcorr_app.io.cached_planes import is_plain
from xcorr_app.registration.stack.frames import Chunk, Frames
from xcorr_app.registration.stack.passes import Pass, Progress


@dataclass(frozen=True)
class HostPlanes:
    """Planes at these positions (t, z, c), in order, as frames; several that follow each other are averaged into one.

    With CuPy as `xp`, frames are handed out as device arrays.
    """

    source: Source
    positions: Sequence[dict[str, int]]
    averaged: int = 1
    xp: Any = np
    uploaded: Frames | None = None
    """The same as they come to a device; None where they are worked on in host memory."""

    @property
    def count(self) -> int:
        """Number of frames."""
        return len(self.positions) // self.averaged

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.source.sizes["Y"], self.source.sizes["X"]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a pixel as stored."""
        return self.source.metadata.dtype

    @property
    def read_dtype(self) -> np.dtype[Any]:
        """Type of a pixel of what is read: means are float64."""
        return self.dtype if self.averaged == 1 else np.dtype(np.float64)

    @property
    def is_plain(self) -> bool:
        """See :func:`xcorr_app.io.cached_planes.is_plain`."""
        return is_plain(self.source)

    @property
    def frames(self) -> Frames:
        """The frames where they are worked on."""
        return self.uploaded or self

    def read_for(self, xp: Any, start: int, stop: int) -> Chunk:
        """Frames for an array module, not to be changed."""
        return (self if xp is np else self.frames).read(start, stop)

    def read(self, start: int, stop: int) -> Chunk:
        """Read frames; one that cannot be read is zero and named with the reason."""
        if self.averaged == 1:
            frames, errors = self.planes(self.positions[start:stop])
            unreadable = {start + i: str(error) for i, error in errors.items()}
        else:
            frames = np.empty((stop - start, *self.shape))
            unreadable = self.fill(start, stop, frames)
        return Chunk(start, self.xp.asarray(frames), unreadable)

    def fill(self, start: int, stop: int, out: np.ndarray) -> dict[int, str]:
        """Read frames into a buffer; returns why some cannot be read, by frame number."""
        if self.averaged == 1:
            return {start + i: str(error) for i, error in self._held.fill(self.positions[start:stop], out).items()}
        unreadable: dict[int, str] = {}
        for i, mean in enumerate(out, start):
            planes, errors = self.planes(self.positions[i * self.averaged : (i + 1) * self.averaged])
            mean[:] = 0
            if errors:
                unreadable[i] = str(next(iter(errors.values())))
                continue
            for plane in planes:
                mean += plane
        out /= self.averaged
        return unreadable

    def planes(self, positions: Sequence[dict[str, int]]) -> tuple[np.ndarray, dict[int, InputError]]:
        """Planes at positions, not to be changed, on the host; those that cannot be read are zero."""
        return self._held.planes(positions)

    @property
    def _held(self) -> HeldSource:
        """The source, which keeps nothing where the stack's resources did not open it."""
        return self.source if isinstance(self.source, HeldSource) else HeldSource(self.source, MemoryBudget(0))

    def on_host(self) -> Self:
        """Return the same frames, handed out as NumPy arrays."""
        return replace(self, xp=np)


T = TypeVar("T")

NOTE = "The device's memory did not suffice for the stack: the CPU {} it from plane {} on."


def over_planes(
    xp: Any,
    count: int,
    pixels: int,
    job: Callable[..., T],
    stage: tuple[str, str],
    progress: Progress | None,
    notes: list[str],
) -> Iterator[T]:
    """Yield ``job(start, stop, xp=xp)`` for consecutive ranges of `count` planes of `pixels`, in order.

    Where the device's memory does not suffice for a single plane, the CPU goes on from there, and `notes` says so once.
    `stage` is a verb for the progress, and its past tense for that note.
    """
    name, past = stage
    report = progress or (lambda _stage, _done, _total: None)
    report(name, 0, count)
    done = 0
    for there in [np] if xp is np else [xp, np]:
        try:
            for stop, result in Pass(count, pixels, there is not np).within(done, count, partial(job, xp=there)):
                yield result
                del result  # not kept while the next one is computed
                done = stop
                report(name, done, count)
            return
        except DeviceMemoryError:
            if there is np:
                raise
            release_unused()
            notes.append(NOTE.format(past, done))


def write_planes(writer: Any, planes: Array, area: tuple[slice, slice] | None = None, *, counted: bool = False) -> int:
    """Write planes (..., Y, X), or an area of each, in order; returns how many pixels are NaN or infinite, if asked."""
    unusual = 0
    for part in download_in_parts(planes):
        if counted and part.dtype.kind == "f":
            unusual += part.size - int(np.count_nonzero(np.isfinite(part)))
        for plane in part.reshape(-1, *part.shape[-2:]):
            writer.write(plane if area is None else plane[area])
    return unusual
