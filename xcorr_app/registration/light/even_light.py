"""Frames whose light changes from place to place over the series, as if all were lit alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.gpu.runtime.arrays import array_namespace
from xcorr_app.registration.light.light_field import fields
from xcorr_app.registration.stack.frames import Chunk, FramesOver


@dataclass(frozen=True)
class EvenlyLitFrames(FramesOver):
    """Frames as if all were lit alike, as floats."""

    gain: NDArray[np.float64]
    """(T, terms) logarithm of the gain, and"""
    offset: NDArray[np.float64]
    """(T, terms) offset of each frame."""
    shifts: NDArray[np.float64]
    """(T, 2) from each frame onto the one that light is compared with."""
    noise: float
    """Variance of the noise over that of the scene."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a pixel, a float."""
        return working_dtype(np.empty(0, self.source.dtype))

    def read(self, start: int, stop: int) -> Chunk:
        """Read frames and even their light; those that are flat, or could not be read, stay so."""
        chunk = self.source.read(start, stop)
        frames, part, mean = chunk.frames, slice(start, start + len(chunk.frames)), self.gain.mean(axis=0)
        xp = array_namespace(frames)
        gain, shape, shifts = self.gain[part], self.shape, self.shifts[part]
        flat = (frames == frames[:, :1, :1]).all(axis=(1, 2), keepdims=True)
        offset = fields(self.offset[part], shape, shifts, frames)
        relative = xp.exp(2 * fields(gain - mean, shape, shifts, frames))
        even = (frames - offset) / xp.sqrt((relative + self.noise) / (1 + self.noise))
        return replace(chunk, frames=xp.where(flat, frames, even).astype(self.dtype, copy=False))

    @property
    def note(self) -> str:
        """What was done, in words."""
        rms = float(np.sqrt(((self.gain - self.gain.mean(axis=0))[:, 1:] ** 2).sum(axis=1).max()))
        return (
            f"The light changes from place to place over the series (by up to {100 * np.expm1(rms):.0f} %): "
            "frames were brought to even light for measuring."
        )
