"""Frames in which pixels that cannot be the scene are filled from those around them.

A pixel, or a line of two, becomes a mean of its neighbours; of more, a rim does, and the rest is given the mean of its
frame, which shows nothing and takes no part in a correlation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.stack.frames import Chunk, FramesOver
from xcorr_app.registration.weights.borders import in_borders
from xcorr_app.registration.weights.outliers import outliers

_RINGS = 3
"""Pixels from the rim inwards that are filled from what is beside them."""
_WEIGHTS = {(i, j): 2 - abs(i * j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j}
"""Of the eight around a pixel: those beside it count twice as much as those at its corners."""


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

    def filled(self, frames: Array) -> Array:
        """Frames (n, h, w), filled."""
        hidden: Array = self.hidden[None]
        if self.borders:
            hidden = in_borders(frames) | array_namespace(frames).asarray(hidden)
        if self.borders or hidden.any():
            frames = filled(frames, hidden)
        return filled(frames, outliers(frames)[1]) if self.hits else frames


def filled(frames: Array, hidden: Array) -> Array:
    """Copies of frames (n, h, w) with the pixels `hidden` (1 or n, h, w) filled; a flat one stays flat."""
    xp, out = array_namespace(frames), frames.copy()
    known, (height, width) = ~hidden, frames.shape[1:]
    counts = xp.asarray(known) & xp.isfinite(frames)
    # Divided before they are summed: the sum of large values must not overflow.
    number = xp.maximum(counts.sum(axis=(1, 2), keepdims=True), 1)
    mean = (xp.where(counts, frames, 0) / number).sum(axis=(1, 2), keepdims=True)
    mean = mean if frames.dtype.kind == "f" else xp.rint(mean)
    for _ in range(_RINGS):
        t, y, x = (~known & _beside(known)).nonzero()
        at: Array = slice(None) if len(hidden) < len(frames) or len(frames) == 1 else xp.asarray(t)
        total: Array = 0.0
        weights: Array = 0.0
        for (i, j), weight in _WEIGHTS.items():
            place = (_mirrored(y + i, height), _mirrored(x + j, width))
            there = (at, *(xp.asarray(each) for each in place))
            counts = xp.asarray(known[t, *place]) & xp.isfinite(out[there])
            total = total + xp.where(counts, out[there], 0) * float(weight)
            weights = weights + weight * counts
        here = (at, xp.asarray(y), xp.asarray(x))
        of_frame = mean[:, 0] if isinstance(at, slice) else mean[at, 0, 0]
        around = xp.where(weights > 0, total / xp.maximum(weights, 1), of_frame)
        out[here] = around if frames.dtype.kind == "f" else xp.rint(around)
        known[t, y, x] = True
    return xp.where(xp.asarray(known), out, mean.astype(frames.dtype))


def _beside(known: Array) -> Array:
    """Pixels (n, h, w) above, below or beside those that are known."""
    padded = array_namespace(known).pad(known, ((0, 0), (1, 1), (1, 1)))
    found: Array = padded[:, :-2, 1:-1] | padded[:, 2:, 1:-1] | padded[:, 1:-1, :-2] | padded[:, 1:-1, 2:]
    return found


def _mirrored(index: Array, size: int) -> Array:
    """Indices, those one beyond either end mirrored there."""
    return size - 1 - abs(size - 1 - abs(index))
