"""Local contrast: every place of an image has zero mean and unit deviation, so that each has an equal say.

A few bright moving things outvote a faint scene that stands still, and a gradient of illumination outvotes both. Less
the mean and over the standard deviation of what is around each pixel (Gaussian weights, sigma S), what is left is
texture; applied to frames and reference for measuring only.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from xcorr_app.correlation.standardize import standardize
from xcorr_app.errors import ArgumentError
from xcorr_app.filtering import named
from xcorr_app.filtering.convolve import filter_frames
from xcorr_app.filtering.taps import Filter
from xcorr_app.gpu.runtime.arrays import Array, array_namespace

DEFAULT_SIGMA = 8.0
"""Of the Gaussian, in pixels, where ``auto`` takes local contrast."""
_MAX_SIGMA = 250.0
_FLOOR = 0.01
"""Local deviation, as a share of the whole image's, below which a place counts as flat."""


@dataclass(frozen=True)
class Contrast:
    """What is done about contrast before measuring: nothing, ``local`` of a sigma in pixels, or to be decided."""

    sigma: float | None = None
    auto: bool = False

    @classmethod
    def parse(cls, text: str) -> Contrast:
        """Read ``none``, ``local:S`` or ``auto``.

        Raises
        ------
        ArgumentError
            If it is none of these, or S is out of range.
        """
        if text in ("none", "auto"):
            return cls(auto=text == "auto")
        name, _, number = text.partition(":") if isinstance(text, str) else ("", "", "")
        try:
            sigma = float(number) if name == "local" else 0.0
        except ValueError:
            sigma = 0.0
        if not 1 <= sigma <= _MAX_SIGMA:
            raise ArgumentError(
                f"contrast is {text!r}: use none, auto or local:S with S from 1 to {_MAX_SIGMA:g} pixels"
            )
        return cls(sigma)

    def __str__(self) -> str:
        if self.auto:
            return "auto"
        return "none" if self.sigma is None else f"local:{self.sigma:g}"

    def __call__(self, frames: Array) -> Array:
        """Local contrast of frames (n, h, w) of finite values, as floats; without a sigma the frames themselves."""
        if self.sigma is None:
            return frames
        xp = array_namespace(frames)
        dtype = np.float64 if frames.dtype == np.float64 else np.float32
        taps = _gaussian(self.sigma)
        # Without the mean and of magnitude one, squares keep their digits.
        values = standardize(frames, dtype).values
        least = _FLOOR**2 * (values * values).mean(axis=(1, 2), keepdims=True, dtype=np.float64).astype(dtype)
        values = values - _smoothed(values, taps)
        variance = xp.maximum(_smoothed(values * values, taps), least)
        return xp.where(variance > 0, values / xp.sqrt(xp.where(variance > 0, variance, 1)), 0)


@functools.lru_cache(maxsize=8)
def _gaussian(sigma: float) -> Filter:
    """One filter for all calls: a device's plans are kept by it."""
    return named.gaussian(sigma)


def _smoothed(frames: Array, taps: Filter) -> Array:
    return filter_frames(frames, taps, dtype="same", count=False)[0]
