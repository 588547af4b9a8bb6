"""Frames whose light changes from place to place over the series, as if all were lit alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.light.light_field import fields
from xcorr_app.registration.stack.frames import Chunk, FloatFramesOver


@dataclass(frozen=True)
class EvenlyLitFrames(FloatFramesOver):
    """Frames as if all were lit alike."""

    gain: NDArray[np.float64]
    """(T, terms) logarithm of the gain, and"""
    offset: NDArray[np.float64]
    """(T, terms) offset of each frame."""
    shifts: NDArray[np.float64]
    """(T, 2) from each frame onto the one that light is compared with."""
    noise: float
    """Variance of the noise over that of the scene."""

    def changed(self, chunk: Chunk) -> Array:
        """Even their light."""
        frames, part = chunk.frames, slice(chunk.start, chunk.start + len(chunk.frames))
        gain, shape, shifts, mean = self.gain[part], self.shape, self.shifts[part], self.gain.mean(axis=0)
        xp = array_namespace(frames)
        offset = fields(self.offset[part], shape, shifts, frames)
        relative = xp.exp(2 * fields(gain - mean, shape, shifts, frames))
        return (frames - offset) / xp.sqrt((relative + self.noise) / (1 + self.noise))

    @property
    def note(self) -> str:
        """What was done, in words."""
        rms = float(np.sqrt(((self.gain - self.gain.mean(axis=0))[:, 1:] ** 2).sum(axis=1).max()))
        return (
            f"The light changes from place to place over the series (by up to {100 * np.expm1(rms):.0f} %): "
            "frames were brought to even light for measuring."
        )
