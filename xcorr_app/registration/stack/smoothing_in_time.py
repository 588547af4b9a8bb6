"""Frames averaged with those around them before they are measured, for movies with few photons a frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from xcorr_app.correlation.standardize import flat_images
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.stack.frames import Chunk, Frames, FramesOver


@dataclass(frozen=True)
class SmoothedFrames(FramesOver):
    """Each frame as the mean of `length` frames around it, at the ends of those there are.

    Of an even number the outermost two on either side count half, so that the mean lies where the frame does. Frames
    that cannot be read or are flat, and pixels that are not finite, stay so and do not enter others.
    """

    length: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a pixel of the means: float32, or float64 where that is needed."""
        stored = self.source.dtype
        single = stored.itemsize <= 2 or (stored.kind == "f" and stored.itemsize == 4)
        return np.dtype(np.float32 if single else np.float64)

    def read(self, start: int, stop: int) -> Chunk:
        """Average frames; those around a chunk are read with it."""
        reach = self.length // 2
        begin, end = max(start - reach, 0), min(stop + reach, self.count)
        chunk = self.source.read(begin, end)
        frames, xp = chunk.frames, array_namespace(chunk.frames)
        lost = xp.asarray(np.array([begin + i in chunk.unreadable for i in range(end - begin)]))
        finite = xp.isfinite(frames)
        values = xp.where(finite, frames, 0)
        known = finite & ~(lost | xp.asarray(flat_images(values)))[:, None, None]
        total: Array = xp.zeros((stop - start, *self.shape))
        covered: Array = xp.zeros_like(total)
        for step in range(-reach, reach + 1):
            share = 0.5 if self.length % 2 == 0 and abs(step) == reach else 1.0
            first, last = max(start, begin - step), min(stop, end - step)
            if first < last:
                here, there = slice(first - start, last - start), slice(first + step - begin, last + step - begin)
                total[here] += share * xp.where(known[there], values[there], 0)
                covered[here] += share * known[there]
        own = slice(start - begin, stop - begin)
        means = xp.where(known[own] & (covered > 0), total / xp.where(covered > 0, covered, 1.0), frames[own])
        means = means.astype(self.dtype)
        return Chunk(start, means, {n: why for n, why in chunk.unreadable.items() if start <= n < stop})


def smoothed_in_time(frames: Frames, length: int) -> Frames:
    """Frames averaged over `length` around each; themselves where that is one."""
    return frames if length == 1 else SmoothedFrames(frames, length)
