"""What a frame is compared with.

No frame votes for itself: a mean or median of the stack is taken without the frame that is being measured, and
so is the template of aligned frames. A reference that contains the frame would pull noisy frames towards zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.apply import shift_frames
from xcorr_app.registration.frames import Frames
from xcorr_app.registration.preparation import Prepared, prepare
from xcorr_app.registration.settings import Settings


class Reference(Protocol):
    """Reference images for consecutive measured frames."""

    def images(self, start: int, prepared: Prepared) -> Array:
        """Images (1 or n, h, w) for prepared frames (n, h, w), the first of which is number `start`."""
        ...


@dataclass(frozen=True)
class FixedImage:
    """The same image (h, w) for every frame."""

    image: Array

    def images(self, start: int, prepared: Prepared) -> Array:
        """The image, as a stack of one."""
        return self.image[None]


@dataclass(frozen=True)
class MeanOfOthers:
    """Mean of all usable frames but the one measured.

    `total` (float64) is the sum of `count` frames; `usable` says which took part.
    """

    total: Array
    count: int
    usable: Array

    def images(self, start: int, prepared: Prepared) -> Array:
        """Leave-one-out means, float64."""
        frames, xp = prepared.frames, array_namespace(prepared.frames)
        took_part = xp.asarray(self.usable[start : start + frames.shape[0]])[:, None, None]
        return (self.total - frames * took_part) / xp.maximum(self.count - took_part.astype(np.int64), 1)


@dataclass(frozen=True)
class MedianOfOthers:
    """Median of all usable frames but the one measured, from three order statistics of each pixel.

    Of an odd number ``2 k + 1`` of sorted values ``low = s[k - 1], middle = s[k], high = s[k + 1]`` are kept: without
    the frame's own value x, the median is the mean of the two that remain in the middle. Of an even number ``2 k``,
    ``low = middle = s[k - 1], high = s[k]``: the one on the other side of x remains.
    """

    low: Array
    middle: Array
    high: Array
    odd: bool
    usable: Array

    def images(self, start: int, prepared: Prepared) -> Array:
        """Leave-one-out medians, float64."""
        frames, xp = prepared.frames, array_namespace(prepared.frames)
        low, middle, high = (part.astype(np.float64) for part in (self.low, self.middle, self.high))
        if self.odd:
            below, above, itself = (middle + high) / 2, (low + middle) / 2, (low + high) / 2
            medians = xp.where(frames < self.middle, below, xp.where(frames > self.middle, above, itself))
        else:
            medians = xp.where(frames <= self.low, high, low)
        took_part = xp.asarray(self.usable[start : start + frames.shape[0]])[:, None, None]
        whole = middle if self.odd else (low + high) / 2
        return xp.where(took_part, medians, whole)


@dataclass(frozen=True)
class AlignedMeanOfOthers:
    """Mean of all frames with a shift inside the window, moved by it, but the one measured.

    `total` (float64) is the sum of the `count` moved frames, `took_part` (T,) says which they are, `shifts` (T, 2)
    what they were moved by.
    """

    total: Array
    count: int
    took_part: Array
    shifts: Array

    def images(self, start: int, prepared: Prepared) -> Array:
        """Leave-one-out means of the moved frames, float64."""
        frames, xp = prepared.frames, array_namespace(prepared.frames)
        part = slice(start, start + frames.shape[0])
        own = move_for_template(frames, self.shifts[part])
        took_part = xp.asarray(self.took_part[part])[:, None, None]
        return (self.total - own * took_part) / xp.maximum(self.count - took_part.astype(np.int64), 1)


@dataclass(frozen=True)
class PreviousUsable:
    """The last usable frame before each; the first usable frame meets itself."""

    source: Frames
    settings: Settings

    def images(self, start: int, prepared: Prepared) -> Array:
        """Previous frames, reading back as far as needed before the chunk."""
        images = prepared.frames.copy()
        last = self._before(start)
        for i in range(images.shape[0]):
            if last is not None:
                images[i] = last
            if prepared.usable[i]:
                last = prepared.frames[i]
        return images

    def _before(self, start: int) -> Array | None:
        for number in range(start - 1, -1, -1):
            prepared = prepare(self.source.read(number, number + 1), self.settings)
            if prepared.usable[0]:
                return prepared.frames[0]
        return None


def move_for_template(frames: Array, shifts: Array) -> Array:
    """Frames moved by their shifts, edges continued; frames without a shift stay."""
    values = frames.astype(np.float64 if frames.dtype == np.float64 else np.float32)
    moved, _ = shift_frames(values, np.nan_to_num(shifts), order=3, mode="nearest", workers=1)
    return moved
