"""Filters applied to frames for measuring only; what is written is never filtered.

Filtering both images weights their cross-spectrum; the weighting by signal and noise that is done by itself is in
:mod:`xcorr_app.correlation.weighting`.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.arrays import Array, array_namespace

# name -> what its numbers mean
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "gaussian": ("sigma",),
    "highpass": ("sigma",),
    "dog": ("small sigma", "large sigma"),
    "log": ("sigma",),
    "median": ("size",),
    "sobel": (),
}


@dataclass(frozen=True)
class Prefilter:
    """A named filter with its numbers (pixels); no name leaves frames as they are."""

    name: str | None = None
    arguments: tuple[float, ...] = ()

    @classmethod
    def parse(cls, text: str | None) -> Prefilter:
        """Read ``NAME:ARGS``: gaussian:S, highpass:S, dog:S1,S2, log:S, median:N, sobel; None or "none" for no filter.

        Raises
        ------
        ArgumentError
            If it is no text, the name is unknown, or the numbers are missing, too many or not positive.
        """
        if text is None or text == "none":
            return cls()
        if not isinstance(text, str):
            raise ArgumentError(f"prefilter is {text!r}: give its name and numbers as text, such as gaussian:1.5")
        name, _, numbers = text.partition(":")
        if name not in _ARGUMENTS:
            raise ArgumentError(f"unknown prefilter {name!r}: use one of {', '.join(_ARGUMENTS)}")
        wanted = _ARGUMENTS[name]
        example = name + (":" + ",".join(w.upper().replace(" ", "-") for w in wanted) if wanted else "")
        try:
            arguments = tuple(float(number) for number in numbers.split(",")) if numbers else ()
        except ValueError:
            raise ArgumentError(f"prefilter {text!r} holds something that is no number: write {example}") from None
        if len(arguments) != len(wanted) or not all(np.isfinite(a) and 0 < a <= 1000 for a in arguments):
            raise ArgumentError(f"prefilter {text!r} is not understood: write {example}, in pixels, above 0")
        if name == "dog" and arguments[0] >= arguments[1]:
            raise ArgumentError(f"prefilter {text!r}: the first sigma must be smaller than the second")
        return cls(name, arguments)

    def __str__(self) -> str:
        if self.name is None:
            return "none"
        return self.name + (":" + ",".join(f"{a:g}" for a in self.arguments) if self.arguments else "")

    def __call__(self, frames: Array) -> Array:
        """Filter every frame of a stack (n, Y, X) of finite values; the result is float32, or float64 for float64."""
        if self.name is None:
            return frames
        xp = array_namespace(frames)
        ndimage: Any = importlib.import_module("scipy.ndimage" if xp is np else "cupyx.scipy.ndimage")
        values = frames.astype(np.float64 if frames.dtype == np.float64 else np.float32)
        if self.name == "sobel":
            # Axis by axis: ndimage.sobel would smooth along the frames too.
            difference, smoothing = xp.asarray([-1.0, 0.0, 1.0]), xp.asarray([1.0, 2.0, 1.0])
            slopes = []
            for along, across in ((1, 2), (2, 1)):
                slope = ndimage.correlate1d(values, difference, axis=along)
                slopes.append(ndimage.correlate1d(slope, smoothing, axis=across))
            return xp.hypot(*slopes)
        if self.name == "median":
            return ndimage.median_filter(values, size=(1, *(max(1, round(self.arguments[0])),) * 2))
        smooth = [ndimage.gaussian_filter(values, (0, sigma, sigma)) for sigma in self.arguments]
        if self.name == "gaussian":
            return smooth[0]
        if self.name == "highpass":
            return values - smooth[0]
        if self.name == "dog":
            return smooth[0] - smooth[1]
        sigma = self.arguments[0]
        return -(
            ndimage.gaussian_filter(values, (0, sigma, sigma), order=(0, 2, 0))
            + ndimage.gaussian_filter(values, (0, sigma, sigma), order=(0, 0, 2))
        )
