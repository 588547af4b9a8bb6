"""What a frame is compared with.

No frame votes for itself: a mean of the stack is taken without the frame that is being measured, and
so is the template of aligned frames. A reference that contains the frame would pull noisy frames towards zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array
from xcorr_app.registration.measuring.placement import (
    Placement,
    coverage,
    entering,
    means_without_each,
    moved,
)
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import Frames
from xcorr_app.registration.stack.preparation import PreparedChunk, Reference, prepare

_UNCOVERED = 1e-9
"""Sum of weights below which no frame covers a pixel: weights are squares of correlations, or rounding."""


@dataclass(frozen=True)
class FixedImage(Reference):
    """The same image (h, w) for every frame."""

    image: Array

    def images(self, start: int, prepared: PreparedChunk) -> Array:
        """The image, as a stack of one."""
        return self.image[None]


@dataclass(frozen=True)
class MeanOfOthers(Reference):
    """Mean of frames, moved or not, but the one measured, and those that were averaged with it.

    `total` and `weights` (float64, h, w) are the sums of what the frames add and of their weights; where none is left,
    the mean of the others' mean stands. Frames up to `settings.apart` numbers away are left out with the one measured.
    """

    is_stored: ClassVar[bool] = False
    total: Array
    weights: Array
    placement: Placement
    source: Frames
    settings: Settings
    part: tuple[slice, slice] | None = None

    @property
    def count(self) -> int:
        """Number of frames that take part."""
        return int((self.placement.weight > 0).sum())

    def mean(self) -> tuple[Array, Array]:
        """Mean of all frames (h, w), and where there is one."""
        images, known = quotient(self.total[None], self.weights[None])
        return images[0], known[0]

    def images(self, start: int, prepared: PreparedChunk) -> Array:
        """Leave-out means, float64."""
        count = prepared.frames.shape[0]
        first, stop = max(start - self.settings.apart, 0), min(start + count + self.settings.apart, self.source.count)
        part = self.placement.of(slice(first, stop))
        frames = prepared.frames
        if self.settings.apart:
            frames = prepare(self.source.read(first, stop), self.settings).frames
        xp = array_namespace(frames)
        rows, columns = coverage(part, frames.shape[1:], xp)
        if not self.settings.apart and is_device_array(frames):
            there, sums = moved(frames, part.shifts), (self.total, self.weights)
            return _levelled(*means_without_each(there, part, rows, columns, sums, _UNCOVERED))[0]
        places = start - first + np.arange(count)
        own = window_sums(entering(frames, part), places, self.settings.apart)
        own_weights = window_sums(rows[:, :, None] * columns[:, None, :], places, self.settings.apart)
        return quotient(self.total - own, self.weights - own_weights)[0]


def quotient(total: Array, weights: Array) -> tuple[Array, Array]:
    """Means (n, h, w) from sums and weights, those of each image's own known part elsewhere; and what is known."""
    xp = array_namespace(total)
    known = weights > _UNCOVERED
    if bool(known.all()):
        return total / weights, known
    return _levelled(xp.where(known, total / xp.where(known, weights, 1.0), 0.0), known)


def _levelled(means: Array, known: Array) -> tuple[Array, Array]:
    """Means (n, h, w), zero where they are not known, with those of each image's own known part there; and where."""
    if bool(known.all()):
        return means, known
    xp = array_namespace(means)
    level = means.sum(axis=(1, 2)) / xp.maximum(known.sum(axis=(1, 2)), 1)
    return xp.where(known, means, level[:, None, None]), known


def window_sums(values: Array, places: NDArray[np.intp], reach: int) -> Array:
    """Sums (n, h, w) over the images up to `reach` before and after each place (n,) in values (m, h, w)."""
    xp = array_namespace(values)
    if reach == 0:
        return values if places.size == values.shape[0] else values[xp.asarray(places)]
    total: Array = 0.0
    for step in range(-reach, reach + 1):
        there = places + step
        present = (there >= 0) & (there < values.shape[0])
        rows = xp.asarray(np.clip(there, 0, values.shape[0] - 1))
        total = total + values[rows] * xp.asarray(present.astype(np.float64))[:, None, None]
    return total
