"""Filters applied to frames for measuring only; what is written is never filtered.

Filtering both images weights their cross-spectrum; the weighting by signal and noise that is done by itself is in
:mod:`xcorr_app.correlation.weighting`.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from xcorr_app.correlation.standardize import standardize
from xcorr_app.errors import ArgumentError
from xcorr_app.filtering import named
from xcorr_app.filtering.convolve import filter_frames
from xcorr_app.filtering.request import IMAGE_TYPES
from xcorr_app.filtering.rounding import ResultType
from xcorr_app.filtering.taps import Filter
from xcorr_app.gpu.runtime.arrays import Array, array_namespace

DEFAULT_SIGMA = 8.0
"""Of the Gaussian, in pixels, where ``auto`` takes local contrast."""
_MAX_SIGMA = 250.0
"""Pixels; wider Gaussians are no longer local in any frame, and their taps fill memory."""
_FLOOR = 0.01
"""Local deviation, as a share of the whole image's, below which a place counts as flat."""


@dataclass(frozen=True)
class Prefilter:
    """A named filter with its numbers (pixels); no name leaves frames as they are."""

    name: str | None = None
    arguments: tuple[float, ...] = ()

    @classmethod
    def parse(cls, text: str | None) -> Prefilter:
        """Read ``NAME:ARGS``, as in dog:1,3; None or "none" for no filter.

        gaussian:S, dog:S1,S2, unsharp:S,AMOUNT, box:N and laplacian are those of ``xcorr filter``; highpass:S is the
        image less its Gaussian, log:S is positive on bright blobs, sobel is the slope's size, median:N is of N x N.
        """
        if text is None or text == "none":
            return cls()
        if not isinstance(text, str):
            raise ArgumentError(f"prefilter is {text!r}: give its name and numbers as text, such as gaussian:1.5")
        name, _, numbers = text.partition(":")
        if name not in _FILTERS:
            raise ArgumentError(f"unknown prefilter {name!r}: use one of {', '.join(_FILTERS)}")
        wanted = _FILTERS[name][0]
        example = name + (":" + ",".join(w.upper().replace(" ", "-") for w in wanted) if wanted else "")
        try:
            arguments = tuple(float(number) for number in numbers.split(",")) if numbers else ()
        except ValueError:
            raise ArgumentError(f"prefilter {text!r} holds something that is no number: write {example}") from None
        if len(arguments) != len(wanted) or not all(np.isfinite(a) and 0 < a <= 1000 for a in arguments):
            raise ArgumentError(f"prefilter {text!r} is not understood: write {example}, in pixels, above 0")
        if name == "dog" and arguments[0] >= arguments[1]:
            raise ArgumentError(f"prefilter {text!r}: the first sigma must be smaller than the second")
        try:
            _taps(name, arguments)
        except ArgumentError as error:
            raise ArgumentError(f"prefilter {text!r}: {error}") from None
        return cls(name, arguments)

    def __str__(self) -> str:
        if self.name is None:
            return "none"
        return self.name + (":" + ",".join(f"{a:g}" for a in self.arguments) if self.arguments else "")

    def __call__(self, frames: Array) -> Array:
        """Filter every frame of a stack (n, Y, X) of finite values; the result is float32, or float64 for float64.

        Where the frames are on a device, so is everything; but for the median, no more is made of them than the result
        (and, for the size of the slope, its second part).
        """
        if self.name is None:
            return frames
        is_wide = frames.dtype == np.float64
        if self.name == "median":
            library = "scipy.ndimage" if array_namespace(frames) is np else "cupyx.scipy.ndimage"
            ndimage: Any = importlib.import_module(library)
            size = (1, *(max(1, round(self.arguments[0])),) * 2)
            return ndimage.median_filter(frames.astype(np.float64 if is_wide else np.float32), size=size)
        if frames.dtype not in IMAGE_TYPES:
            frames = frames.astype(np.float32)
        wanted: ResultType = "same" if is_wide else "float32"
        parts = [filter_frames(frames, taps, dtype=wanted, count=False)[0] for taps in _taps(self.name, self.arguments)]
        if len(parts) == 1:
            return parts[0]
        return array_namespace(frames).hypot(*parts, out=parts[0])


def _box(size: float) -> Filter:
    if round(size) != size:
        raise ArgumentError("the size of a box is a whole number")
    return named.box(round(size))


def _highpass(sigma: float) -> Filter:
    ((column, row),) = named.gaussian(sigma).terms
    here = np.zeros(len(column))
    here[len(column) // 2] = 1.0
    return Filter("highpass", ((here, here), (-column, row)))


def _log(sigma: float) -> Filter:
    return Filter("log", tuple((-column, row) for column, row in named.log(sigma).terms))


_FILTERS: dict[str, tuple[tuple[str, ...], tuple[Callable[..., Filter], ...]]] = {
    "gaussian": (("sigma",), (named.gaussian,)),
    "highpass": (("sigma",), (_highpass,)),
    "dog": (("small sigma", "large sigma"), (named.dog,)),
    "log": (("sigma",), (_log,)),
    "median": (("size",), ()),
    "sobel": ((), (lambda: named.sobel("y"), lambda: named.sobel("x"))),
    "box": (("size",), (_box,)),
    "laplacian": ((), (named.laplacian,)),
    "unsharp": (("sigma", "amount"), (named.unsharp,)),
}
"""What the numbers of each mean, and what makes its taps; the root of the squares of two of them is taken."""


@functools.lru_cache(maxsize=32)
def _taps(name: str, arguments: tuple[float, ...]) -> tuple[Filter, ...]:
    """Filters of a prefilter, the same objects in every call."""
    return tuple(make(*arguments) for make in _FILTERS[name][1])


@dataclass(frozen=True)
class Contrast:
    """What is done about contrast before measuring: nothing, ``local`` of a sigma in pixels, or to be decided.

    Local contrast: every place of an image has zero mean and unit deviation, so that each has an equal say. A few
    bright moving things outvote a faint scene that stands still, and a gradient of illumination outvotes both. Less the
    mean and over the standard deviation of what is around each pixel (Gaussian weights, sigma S), what is left is
    texture; applied to frames and reference for measuring only.
    """

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
        smoothed = Prefilter("gaussian", (self.sigma,))
        # Without the mean and of magnitude one, squares keep their digits.
        values = standardize(frames, dtype).values
        least = _FLOOR**2 * (values * values).mean(axis=(1, 2), keepdims=True, dtype=np.float64).astype(dtype)
        values = values - smoothed(values)
        variance = xp.maximum(smoothed(values * values), least)
        return xp.where(variance > 0, values / xp.sqrt(xp.where(variance > 0, variance, 1)), 0)
