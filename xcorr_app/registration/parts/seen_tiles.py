"""The tiles of the few frames that are looked at, to see whether a stack moves as one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.parts.tiles import Levels, Look, look_by_written, started_levels, started_look
from xcorr_app.registration.stack.prepared_frames import take

Judged: TypeAlias = Callable[[], tuple[NDArray[np.intp], Look]]
"""Numbers of frames, and what their tiles say."""


@dataclass(frozen=True)
class Seen:
    """Frames whose tiles are looked at, by number, with the images they were compared with."""

    numbers: NDArray[np.intp]
    images: Array
    frames: Array
    shifts: NDArray[np.float64]
    levels: Levels | None = None
    begun: Callable[[], Look] | None = None
    """What waits for a device that looks at them already."""

    def started(self) -> Judged:
        """Begin to look; what is returned waits for a device, and says their numbers and what their tiles say."""
        found = self.begun or started_look(self.images, self.frames, self.shifts, levels=self.levels)
        return lambda: (self.numbers, found())

    @staticmethod
    def together(seen: list[Seen], *, shared: bool) -> list[Judged]:
        """The same of several, at once where they can be; all compared with the same image where `shared`."""
        if not seen:
            return []
        xp = array_namespace(seen[0].frames)
        if not shared and any(one.images.shape[0] != one.frames.shape[0] for one in seen):
            return [one.started() for one in seen]
        if len(seen) == 1:
            return [seen[0].started()]
        images = seen[0].images if shared else xp.concatenate([one.images for one in seen])
        frames = xp.concatenate([one.frames for one in seen])
        numbers, shifts = (np.concatenate(parts) for parts in zip(*((s.numbers, s.shifts) for s in seen), strict=True))
        return [Seen(numbers, images, frames, shifts).started()]


class Watched:
    """Frames that will be looked at, of which a device can prepare much before their shifts are known.

    Parameters
    ----------
    images, frames : ndarray, shape (1 or n, h, w) and (n, h, w)
    rows : ndarray of int
        Which of them.
    """

    def __init__(self, images: Array, frames: Array, rows: NDArray[np.intp]) -> None:
        self._all, self._rows = (images, frames), rows
        self._images: Array | None = None
        self._levels: Levels | None = None
        self._begun: Callable[[], Look] | None = None

    def start(self) -> None:
        """Take the frames out, and begin with what needs no shifts."""
        if self._images is None and self._rows.size:
            self._take(self._rows)
            self._levels = started_levels(self._images, self._frames)

    def look(self, written: Array) -> None:
        """Let a device look at them, of all frames that were compared by kernels; it has `written` their shifts."""
        if not self._rows.size:
            return
        rows = array_namespace(written).asarray(self._rows)
        self._take(rows)
        self._begun = look_by_written(self._images, self._frames, written, rows)

    def seen(
        self, numbers: NDArray[np.intp], shifts: NDArray[np.float64], changed: NDArray[np.intp] | None = None
    ) -> Seen:
        """Return them with the numbers (n,) and shifts (n, 2) of all frames, some of which may have been `changed`."""
        begun = self._begun
        if changed is not None and changed.size and np.isin(self._rows, changed).any():
            begun = None
        if begun is None:
            self.start()
        assert self._images is not None  # noqa: S101 - there is at least one, or nobody asks
        return Seen(numbers[self._rows], self._images, self._frames, shifts[self._rows], self._levels, begun)

    def _take(self, rows: Array) -> None:
        images, frames = self._all
        self._images = take(images, rows) if images.shape[0] > 1 else images
        self._frames = take(frames, rows)
