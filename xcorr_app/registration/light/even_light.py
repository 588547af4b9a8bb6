"""Frames whose light changes from place to place over the series, as if all were lit alike."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.light.light_field import fields
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import Chunk, FloatFramesOver
from xcorr_app.registration.stack.preparation import PreparedChunk, Reference


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


_RIM = 8.0
"""Pixels over which images fade."""


@dataclass(frozen=True)
class LitImage(Reference):
    """A frame (h, w) of evenly lit frames, and its number among them: a reference of which both images are weighted.

    Where the light on frame and reference is a and b, and both are as noisy everywhere, ``f / a - g / b`` has the
    variance ``1 / a^2 + 1 / b^2`` times that of the noise: its inverse is the weight of a place (weighted least
    squares). A correlation has it where each image has its root, which depends on both: the reference is another one
    for each frame. Two images alike in weight bend no peak, whatever the noise. What enters a correlation at its rim
    would, where noise is stronger on one side: weights fade to zero where frame or reference ends.
    """

    image: Array
    number: int
    frames: EvenlyLitFrames
    settings: Settings

    def images(self, start: int, prepared: PreparedChunk) -> Array:
        """The image, weighted for each frame (n, h, w)."""
        numbers = np.arange(start, start + prepared.frames.shape[0])
        return self._weighted(self.image[None], np.array([self.number]), numbers)

    def weighted(self, start: int, prepared: PreparedChunk) -> PreparedChunk:
        """Frames (n, h, w), each with the weights that the image has for it."""
        numbers = np.arange(start, start + prepared.frames.shape[0])
        weighted = replace(prepared, frames=self._weighted(prepared.frames, numbers, np.array([self.number])))
        weighted.flat = prepared.flat  # which weights would hide
        return weighted

    def _weighted(self, images: Array, own: NDArray[np.intp], other: NDArray[np.intp]) -> Array:
        """Images under the light of the frames `own`, compared with those of `other`; one or n of each."""
        xp, lit, part = array_namespace(images), self.frames, self.settings.roi or (slice(None), slice(None))
        gain = lit.gain - lit.gain.mean(axis=0)
        shifts, others = np.broadcast_arrays(lit.shifts[own], lit.shifts[other])
        mine, its = (
            xp.exp(-2 * fields(gain[numbers], lit.shape, there, images)[:, *part])
            for numbers, there in ((own, lit.shifts[own]), (other, shifts))
        )
        # Evenly lit frames were divided by less where they are noisy: what light is left on them is taken off.
        weights = xp.sqrt((2 + 2 * lit.noise * mine) / ((1 + lit.noise) * (mine + its)))
        rows, columns = (
            xp.asarray(_fading(size, (shifts - others)[:, axis]).astype(images.dtype))
            for axis, size in enumerate(images.shape[1:])
        )
        weights *= rows[:, :, None]
        weights *= columns[:, None]
        weights *= images
        return weights.astype(images.dtype, copy=False)


def _fading(size: int, shifts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights (n, size) of pixels along an axis, zero where frame or reference ends."""
    places = np.arange(size) + 0.5
    others = places + shifts[:, None]
    to_end = np.minimum(np.minimum(places, size - places), np.minimum(others, size - others))
    weights: NDArray[np.float64] = np.sin(np.pi / 2 * np.clip(to_end / _RIM, 0, 1))
    return weights
