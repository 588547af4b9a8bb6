"""References made of frames shortly before the one that is measured.

Frames that were averaged over time share what they are made of with their neighbours, and would lie on them wherever
they are: compared are only frames that share nothing, `Settings.apart` numbers or more between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.measuring.placement import Placement, coverage, entering
from xcorr_app.registration.measuring.references import quotient
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import Frames
from xcorr_app.registration.stack.preparation import Prepared, prepare

_RIM = 2
_MIN_SIDE = 16
"""Rows and columns from which a rim may be left out."""


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
class EarlierUsable:
    """The last usable frame before each, `settings.apart` numbers left out; else the first usable one."""

    is_stored: ClassVar[bool] = True
    part: ClassVar[None] = None
    source: Frames
    settings: Settings
    first: tuple[int, Array]
    """Number and prepared image of the first usable frame."""

    def images(self, start: int, prepared: Prepared) -> Array:
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
class GivenFrames:
    """For each frame the one whose number is given, (T,); itself where that is negative."""

    is_stored: ClassVar[bool] = True
    part: ClassVar[None] = None
    source: Frames
    settings: Settings
    numbers: NDArray[np.intp]

    def images(self, start: int, prepared: Prepared) -> Array:
        """The frames given, each read once."""
        xp = array_namespace(prepared.frames)
        wanted = self.numbers[start : start + prepared.usable.size]
        wanted = np.where(wanted < 0, start + np.arange(wanted.size), wanted)
        numbers, rows = np.unique(wanted, return_inverse=True)
        return read_prepared(self.source, self.settings, numbers)[xp.asarray(rows)]


@dataclass(frozen=True)
class RollingMean:
    """For each frame the mean of the last N before it that take part, aligned by shifts that are known nearly.

    The mean lies where the last of them lies, up to whole pixels: `origin` says where. Every frame is read and moved
    once for each chunk that needs it.
    """

    is_stored: ClassVar[bool] = False
    source: Frames
    settings: Settings
    length: int
    shifts: NDArray[np.float64]
    """(T, 2) of all frames; finite."""
    taking_part: NDArray[np.intp]
    """Rising numbers of the frames that take part, at least one."""

    @property
    def part(self) -> tuple[slice, slice] | None:
        """All but the rim that the last frame, moved by less than a pixel, may leave free."""
        rows, columns = self.settings.measured_shape(self.source.shape)
        if min(rows, columns) < _MIN_SIDE:
            return None
        return slice(_RIM, rows - _RIM), slice(_RIM, columns - _RIM)

    def members(self, frames: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Of `taking_part`, where the members for each frame (n,) begin and end; never none."""
        stop = np.searchsorted(self.taking_part, frames - self.settings.apart)
        # Before there is any, the first stands for itself.
        stop = np.maximum(stop, 1)
        return np.maximum(stop - self.length, 0), stop

    def origin(self, frames: NDArray[np.intp]) -> NDArray[np.float64]:
        """(n, 2) whole pixels by which each frame's mean lies from the origin of the shifts."""
        return np.rint(self.shifts[self.taking_part[self.members(frames)[1] - 1]])

    def images(self, start: int, prepared: Prepared) -> Array:
        """Means, float64."""
        xp = array_namespace(prepared.frames)
        frames = np.arange(start, start + prepared.usable.size)
        first, stop = self.members(frames)
        numbers = self.taking_part[first[0] : stop[-1]]
        first, stop = first - first[0], stop - first[0]
        images = read_prepared(self.source, self.settings, numbers)
        whole = np.rint(self.shifts[numbers])
        level = Placement.in_place(images, np.ones(numbers.size, dtype=bool))
        placement = Placement(self.shifts[numbers] - whole, level.gain, level.offset, level.weight)
        values = entering(images, placement)
        rows, columns = coverage(placement, images.shape[1:])
        origin = self.origin(frames)
        total: Array = xp.zeros((frames.size, *images.shape[1:]))
        weights: Array = xp.zeros_like(total)
        for back in range(1, int((stop - first).max()) + 1):
            which = np.flatnonzero(stop - back >= first)
            members = stop[which] - back
            away = (origin[which] - whole[members]).astype(np.intp)
            _add(total, weights, which, values, rows, columns, members, away)
        return quotient(total, weights)[0]


def _add(
    total: Array,
    weights: Array,
    which: NDArray[np.intp],
    values: Array,
    rows: NDArray[np.float64],
    columns: NDArray[np.float64],
    members: NDArray[np.intp],
    away: NDArray[np.intp],
) -> None:
    """Add to the sums `which` (n,) the images `members` (n,), seen from whole pixels away (n, 2)."""
    xp = array_namespace(values)
    height, width = values.shape[1:]
    sides = [np.arange(size) + away[:, axis : axis + 1] for axis, size in enumerate((height, width))]
    known = [xp.asarray((side >= 0) & (side < size)) for side, size in zip(sides, (height, width), strict=True)]
    y, x = (xp.asarray(np.clip(side, 0, size - 1)) for side, size in zip(sides, (height, width), strict=True))
    at, image = xp.asarray(which), xp.asarray(members)
    total[at] += values[image[:, None, None], y[:, :, None], x[:, None, :]] * (
        known[0][:, :, None] & known[1][:, None, :]
    )
    covered = [
        xp.take_along_axis(xp.asarray(side)[image], index, axis=1) * inside
        for side, index, inside in zip((rows, columns), (y, x), known, strict=True)
    ]
    weights[at] += covered[0][:, :, None] * covered[1][:, None, :]
