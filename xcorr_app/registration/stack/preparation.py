"""From a frame as stored to what is compared: region of interest, finite values, prefilter, contrast."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import flat_images
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import Chunk


@dataclass
class Prepared:
    """Frames cropped, finite and filtered, with what is known of each from reading it.

    Which are flat is found out when it is asked for, unless a measurement has told it before.
    """

    frames: Array
    """Shape (n, h, w)."""
    unreadable: NDArray[np.bool_]
    """Frames that could not be read, or hold no finite value."""
    non_finite: NDArray[np.int64]
    """Number of NaN or infinite pixels in the measured part; they were replaced by the mean of the others."""
    vary: frozenset[int] = frozenset()
    """Numbers of frames that are known not to be flat, whether or not the others are judged."""

    @cached_property
    def flat(self) -> NDArray[np.bool_]:
        """(n,) frames that could be read and have one value."""
        flat: NDArray[np.bool_] = to_host(flat_images(self.frames)) & ~self.unreadable
        return flat

    @cached_property
    def usable(self) -> NDArray[np.bool_]:
        """(n,) frames that could be read and are not flat."""
        return ~(self.flat | self.unreadable)

    @property
    def is_judged(self) -> bool:
        """Whether it is known which frames are flat."""
        return "flat" in self.__dict__

    def is_usable(self, number: int) -> bool:
        """Whether one frame is usable; where the others are not judged, no more is read than that frame."""
        if self.is_judged:
            return bool(self.usable[number])
        if self.unreadable[number] or number in self.vary:
            return not self.unreadable[number]
        return not to_host(flat_images(self.frames[number : number + 1]))[0]


def prepare(chunk: Chunk, settings: Settings) -> Prepared:
    """Make a chunk of frames ready for measuring."""
    frames = chunk.frames if settings.roi is None else chunk.frames[:, *settings.roi]
    xp = array_namespace(frames)
    pixels = frames.shape[1] * frames.shape[2]
    non_finite = np.zeros(frames.shape[0], dtype=np.int64)
    if frames.dtype.kind == "f":
        finite = xp.isfinite(frames)
        count = to_host(finite.sum(axis=(1, 2)))
        non_finite = pixels - count
        if non_finite.any():
            # Divided before it is summed: the sum of large values must not overflow.
            shares = (
                xp.where(finite, frames, 0).astype(np.float64) / xp.maximum(finite.sum(axis=(1, 2)), 1)[:, None, None]
            )
            frames = xp.where(finite, frames, shares.sum(axis=(1, 2))[:, None, None].astype(frames.dtype))
    unreadable = np.zeros(frames.shape[0], dtype=bool)
    if chunk.unreadable:
        unreadable[:] = [chunk.start + i in chunk.unreadable for i in range(frames.shape[0])]
    unreadable |= non_finite == pixels
    frames = settings.contrast(settings.prefilter(frames))
    return Prepared(frames, unreadable, non_finite)
