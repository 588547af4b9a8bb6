"""References made of frames shortly before the one that is measured.

Frames that were averaged over time share what they are made of with their neighbours, and would lie on them wherever
they are: compared are only frames that share nothing, `Settings.apart` numbers or more between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import Frames
from xcorr_app.registration.stack.preparation import PreparedChunk, Reference, prepare


def earlier(usable: NDArray[np.bool_], back: int, apart: int = 0) -> NDArray[np.intp]:
    """For each frame (T,) the number of the `back`-th usable one before it, `apart` numbers left out.

    Where there are not as many, the first usable one for `back` 1, so that it is compared with itself, else -1.
    """
    numbers = np.flatnonzero(usable)
    rank = np.searchsorted(numbers, np.arange(usable.size) - apart) - back
    found = np.where(rank >= 0, numbers[np.maximum(rank, 0)] if numbers.size else 0, -1)
    if back == 1 and numbers.size:
        found = np.where(rank < 0, numbers[0], found)
    return found


def read_prepared(source: Frames, settings: Settings, numbers: NDArray[np.intp]) -> Array:
    """Prepared frames of these rising numbers, (n, h, w); consecutive ones are read together."""
    ends = np.flatnonzero(np.diff(numbers) != 1) + 1
    parts = [prepare(source.read(int(run[0]), int(run[-1]) + 1), settings).frames for run in np.split(numbers, ends)]
    return parts[0] if len(parts) == 1 else array_namespace(parts[0]).concatenate(parts)


@dataclass(frozen=True)
class EarlierUsable(Reference):
    """The last usable frame before each, `settings.apart` numbers left out; else the first usable one."""

    source: Frames
    settings: Settings
    first: tuple[int, Array]
    """Number and prepared image of the first usable frame."""

    def images(self, start: int, prepared: PreparedChunk) -> Array:
        """Earlier frames, reading back as far as needed before the chunk."""
        xp = array_namespace(prepared.frames)
        count, gap = prepared.usable.size, self.settings.apart + 1
        begin = max(start - gap, 0)
        images, usable = prepared.frames, prepared.usable
        if begin < start:
            before = prepare(self.source.read(begin, start), self.settings)
            images, usable = xp.concatenate([before.frames, images]), np.concatenate([before.usable, usable])
        last = np.maximum.accumulate(np.where(usable, np.arange(usable.size), -1))
        places = start - begin - gap + np.arange(count)
        rows = np.where(places >= 0, last[np.maximum(places, 0)], -1)
        chosen = images[xp.asarray(np.maximum(rows, 0))]
        if (rows < 0).any():
            chosen[xp.asarray(np.flatnonzero(rows < 0))] = self._before(begin)
        return chosen

    def _before(self, start: int) -> Array:
        number, image = self.first
        for earlier_number in range(start - 1, number, -1):
            prepared = prepare(self.source.read(earlier_number, earlier_number + 1), self.settings)
            if prepared.usable[0]:
                return prepared.frames[0]
        return image


@dataclass(frozen=True)
class GivenFrames(Reference):
    """For each frame the one whose number is given, (T,); itself where that is negative."""

    source: Frames
    settings: Settings
    numbers: NDArray[np.intp]

    def images(self, start: int, prepared: PreparedChunk) -> Array:
        """The frames given, each read once."""
        xp = array_namespace(prepared.frames)
        wanted = self.numbers[start : start + prepared.usable.size]
        wanted = np.where(wanted < 0, start + np.arange(wanted.size), wanted)
        numbers, rows = np.unique(wanted, return_inverse=True)
        return read_prepared(self.source, self.settings, numbers)[xp.asarray(rows)]
