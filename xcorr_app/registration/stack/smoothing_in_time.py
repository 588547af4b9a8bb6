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
        finite = xp.where(xp.isfinite(frames), frames, 0) if frames.dtype.kind == "f" else frames
        weights = ~(lost | xp.asarray(flat_images(finite)))
        total: Array = xp.zeros((stop - start, *self.shape))
        covered: Array = xp.zeros((stop - start, *self.shape) if frames.dtype.kind == "f" else (stop - start, 1, 1))
        for step in range(-reach, reach + 1):
            share = 0.5 if self.length % 2 == 0 and abs(step) == reach else 1.0
            first, last = max(start, begin - step), min(stop, end - step)
            if first >= last:
                continue
            here, there = slice(first - start, last - start), slice(first + step - begin, last + step - begin)
            part = xp.broadcast_to((share * weights[there])[:, None, None], frames[there].shape)
            if frames.dtype.kind == "f":
                part = xp.where(xp.isfinite(frames[there]), part, 0.0)
                total[here] += xp.where(part > 0, frames[there], 0) * part
                covered[here] += part
            else:
                total[here] += frames[there] * part
                covered[here] += part[:, :1, :1]
        own = frames[start - begin : stop - begin]
        keeps = weights[start - begin : stop - begin][:, None, None] & (covered > 0)
        if frames.dtype.kind == "f":
            keeps = keeps & xp.isfinite(own)
        means = xp.where(keeps, total / xp.where(covered > 0, covered, 1.0), own).astype(self.dtype)
        return Chunk(start, means, {n: why for n, why in chunk.unreadable.items() if start <= n < stop})


def smoothed_in_time(frames: Frames, length: int) -> Frames:
    """Frames averaged over `length` around each; themselves where that is one."""
    return frames if length == 1 else SmoothedFrames(frames, length)
