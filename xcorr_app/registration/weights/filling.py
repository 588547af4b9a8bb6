"""Frames in which pixels that cannot be the scene are filled from those around them.

A pixel, or a line of two, becomes a mean of its neighbours; of more, a rim does, and the rest is given the mean of its
frame, which shows nothing and takes no part in a correlation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import cv2
import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.stack.frames import Chunk, FramesOver
from xcorr_app.registration.weights.borders import in_borders

DEVIATIONS = 12.0
"""Of the noise, by which an outlier lies beyond its neighbours: none does by chance among 1e9 pixels."""
NOISE_OF_STEPS = 1.4826 / math.sqrt(2)
"""Standard deviation of white noise over the median step between neighbours."""
_REACH, RANGE = 0.05, 5.0
"""Share of its height, and deviations of the noise (of eight pixels 2.8, as a rule), by which its neighbours differ."""
_EIGHT = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]], np.uint8)


def stands_out(image: Array) -> bool:
    """Whether any pixel of an image (h, w) is far beyond all eight around it, without sorting what the noise is.

    As ``kernels/peaks/outlier_pixels.cu`` and ``small_steps.cu`` do.
    """
    above, below, _, steps = relief(image[None])
    height = array_namespace(image).maximum(above.max(), below.max())
    smaller, half = (DEVIATIONS * NOISE_OF_STEPS * steps < height).sum(), steps.size // 2
    return bool((smaller > half) & ((steps == 0).sum() <= half))


def outliers(frames: Array, between: float = RANGE) -> tuple[Array, Array]:
    """Pixels of frames (n, h, w) far beyond all eight around them; and those of which these are alike.

    But for so many deviations of the noise `between` them.
    """
    xp, (above, below, apart, steps) = array_namespace(frames), relief(frames)
    middle = steps.shape[1] // 2
    height, noise = (
        xp.maximum(above, below),
        NOISE_OF_STEPS * xp.partition(steps, middle, axis=1)[:, middle, None, None],
    )
    beyond = (height > DEVIATIONS * noise) & (noise > 0)
    return beyond, beyond & (apart < _REACH * height + between * noise)


def relief(frames: Array) -> tuple[Array, Array, Array, Array]:
    """How far pixels of frames (n, h, w) lie above, and below, the eight around them; how far apart these do, at most.

    And steps (n, k) between neighbours on every fourth row: noise and slopes, most of them small. What is not finite
    counts as zero, and lies beyond nothing. Around the rim frames are mirrored.
    """
    xp = array_namespace(frames)
    values = frames.astype(np.float32 if frames.dtype.itemsize <= 2 or frames.dtype == np.float32 else np.float64)
    if frames.dtype.kind == "f":
        values = xp.where(xp.isfinite(frames), values, 0)
    highest, lowest = _highest_around(values), -_highest_around(-values)
    beyond = values - highest, lowest - values
    if frames.dtype.kind == "f":
        beyond = tuple(xp.where(xp.isfinite(frames), height, 0) for height in beyond)
    return *beyond, highest - lowest, abs(xp.diff(values[:, ::4], axis=2)).reshape(len(values), -1)


def _highest_around(values: Array) -> Array:
    """Highest of the eight around pixels of frames (n, h, w)."""
    if (xp := array_namespace(values)) is np:
        return np.stack([cv2.dilate(each, _EIGHT, borderType=cv2.BORDER_REFLECT_101) for each in values])
    padded = xp.pad(values, ((0, 0), (1, 1), (1, 1)), mode="reflect")
    sides = xp.maximum(padded[..., :-2], padded[..., 2:])
    lines = xp.maximum(sides, padded[..., 1:-1])
    return xp.maximum(xp.maximum(lines[:, :-2], lines[:, 2:]), sides[:, 1:-1])


_RINGS = 3
"""Pixels from the rim inwards that are filled from what is beside them."""
_AROUND = np.array([(-1, -1, -1, 0, 0, 1, 1, 1), (-1, 0, 1, -1, 1, -1, 0, 1)])
_WEIGHTS = np.array([1.0, 2.0, 1.0, 2.0, 2.0, 1.0, 2.0, 1.0]) / 12  # so that no sum overflows
"""Rows and columns to the eight around a pixel: those beside it count twice as much as those at its corners."""


@dataclass(frozen=True, eq=False)
class FilledFrames(FramesOver):
    """Frames without some pixels: the same in all, borders of each, and what stands out in each of them."""

    hidden: NDArray[np.bool_]
    """(Y, X) pixels that no frame shows."""
    borders: bool = False
    hits: bool = False

    def read(self, start: int, stop: int) -> Chunk:
        """Read frames and fill copies of them."""
        chunk = self.source.read(start, stop)
        return replace(chunk, frames=self.filled(chunk.frames))

    @cached_property
    def _rings(self) -> _Rings:
        return _Rings.of(self.hidden[None])

    def filled(self, frames: Array) -> Array:
        """Frames (n, h, w), filled."""
        borders = in_borders(frames) if self.borders else None
        frames = self._rings.filled(frames)
        if borders is not None:
            frames = _Rings(borders, borders).filled(frames)
        return filled(frames, outliers(frames)[1]) if self.hits else frames


def filled(frames: Array, hidden: Array) -> Array:
    """Copies of frames (n, h, w) with the pixels `hidden` (1 or n, h, w) filled; a flat one stays flat.

    What is hidden in all frames may be told on the host.
    """
    return _Rings.of(hidden).filled(frames)


@dataclass(frozen=True, eq=False)
class _Rings:
    """Hidden pixels from their rim inwards."""

    hidden: Array
    left: Array | None
    """Those (1 or n, h, w) that lie too far inside; None where none does."""
    rings: tuple[tuple[Array, ...], ...] = ()
    """Of each pixel its frame, row and column (k,), rows and columns (k, 8) around it, and which of these count."""

    @classmethod
    def of(cls, hidden: Array) -> _Rings:
        """Find them."""
        known, rings, sides = ~hidden, list[tuple[Array, ...]](), array_namespace(hidden).asarray(_AROUND)
        for _ in range(_RINGS):
            t, y, x = (_beside(known) & ~known).nonzero()
            rows, columns = (
                size - 1 - abs(size - 1 - abs(place[:, None] + side))  # mirrored at both ends
                for place, side, size in zip((y, x), sides, hidden.shape[1:], strict=True)
            )
            counts = known[t[:, None], rows, columns]
            rings.append((t, y, x, rows, columns, counts))
            known[t, y, x] = True
            if known.all():
                return cls(hidden, None, tuple(rings))
        return cls(hidden, ~known, tuple(rings))

    def filled(self, frames: Array) -> Array:
        """Fill copies of frames (n, h, w)."""
        xp, out = array_namespace(frames), frames.copy()
        for ring in self.rings:
            t, y, x, rows, columns, known = (xp.asarray(each) for each in ring)
            at, there = (slice(None), slice(None)) if len(self.hidden) == 1 else (t, t[:, None])
            values = out[there, rows, columns]
            counts, weights = _finite(values, known), xp.asarray(_WEIGHTS)
            total, number = ((each * weights).sum(axis=-1) for each in (xp.where(counts, values, 0), counts))
            # What has no neighbour with a value keeps its own.
            out[at, y, x] = _of_type(
                xp.where(number > 0, total / xp.where(number > 0, number, 1), out[at, y, x]), frames
            )
        if self.left is None:
            return out
        counts = _finite(frames, xp.asarray(~self.hidden))
        # Divided before they are summed: the sum of large values must not overflow.
        mean = (xp.where(counts, frames, 0) / xp.maximum(counts.sum(axis=(1, 2), keepdims=True), 1)).sum(axis=(1, 2))
        return xp.where(xp.asarray(self.left), _of_type(mean, frames)[:, None, None], out)


def _beside(known: Array) -> Array:
    """Which pixels (n, h, w) are known, or next to one that is."""
    padded = array_namespace(known).pad(known, ((0, 0), (1, 1), (1, 1)))
    lines = padded[:, :-2] | padded[:, 1:-1] | padded[:, 2:]
    return lines[..., :-2] | lines[..., 1:-1] | lines[..., 2:]


def _finite(values: Array, counts: Array) -> Array:
    """Those that count of values that are numbers."""
    return array_namespace(values).isfinite(values) & counts if values.dtype.kind == "f" else counts


def _of_type(values: Array, frames: Array) -> Array:
    """Values as frames have them."""
    return (values if frames.dtype.kind == "f" else array_namespace(values).rint(values)).astype(frames.dtype)
