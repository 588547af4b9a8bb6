"""What frames leave when they are moved onto each other: of one scene and nothing else, no more than noise.

A first look that costs little. Where it finds nothing, there is no second layer to search for, and no motion that the
shifts missed. Frames are aligned by fractions of pixels, by phases of their spectra: what is left of a scene that is
moved by whole pixels would pass for a second layer.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.peaks.left_over import LeftSums, aligned_products, faded_parts, left_sums
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, fft_namespace, is_device_array, to_host
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of
from xcorr_app.registration.measuring.measured import ShiftColumns, near_each_other, spread, taken
from xcorr_app.registration.parts.tile_bins import BINNED_FROM, binned
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import ArrayFrames, Frames
from xcorr_app.registration.stack.prefilter import Contrast, Prefilter

RIM = 0.15
"""Share of each side over which frames fade."""
_MIN_SHARE = 0.001
"""Share that bends nothing by much."""
_MAX_DEVIATIONS = 2.0
"""Standard errors that are little."""

_LOW, _HIGH = 0.3, 0.35
"""Cycles per pixel on either axis, below which scenes are looked at, and above which there is noise alone."""
_ON_AXIS = 0.04
"""Cycles per pixel up to which rows and columns that differ have all of their power."""
_MIN_GAIN = 0.1
_GAIN_ROUNDS, _LEAST_GAIN = 12, 1e-6
_MIN_OVERLAP = 24
"""Rows and columns in common below which nothing is said."""


@dataclass(frozen=True)
class Residual:
    """What is left of a few frames less their mean once moved by their shifts, beyond white noise."""

    share: float
    """Of the power that the aligned frames share."""
    chance: float
    """Standard error of that."""
    static: float = np.inf
    """What of it the frames share where they were, noise of pixels as well, and"""
    static_chance: float = 0.0
    """standard error of that."""
    shared: float = 0.0
    """That power, in units of `largest` squared."""
    largest: float = 1.0
    """What frames differ from their means by at most: its square may lie beyond what a float holds."""
    is_sure: bool = False
    """Whether nothing else speaks against the frames that were looked at."""

    def times(self, other: Residual) -> float:
        """How much stronger the frames are than others in what they share; 1 where either share nothing."""
        if not (self.shared > 0 and other.shared > 0):
            return 1.0
        return self.shared / other.shared * (self.largest / other.largest) ** 2

    @property
    def is_little(self) -> bool:
        """Whether it bends no shift: a layer that does has more power."""
        return self.share < max(_MIN_SHARE, _MAX_DEVIATIONS * self.chance) and not self.stands_still

    @property
    def stands_still(self) -> bool:
        """Whether the frames share something where they were: one that did not hold their shifts at zero."""
        return not self.static < max(_MIN_SHARE, _MAX_DEVIATIONS * self.static_chance)

    @property
    def leaves_nothing(self) -> bool:
        """Whether there is nothing to explain: frames that are sure leave little."""
        return self.is_little and self.is_sure


UNKNOWN = Residual(np.inf, 0.0)


def residual_of(frames: Frames, measured: ShiftColumns, settings: Settings) -> Residual:
    """Look at a few frames that were measured without more than the default options."""
    if not settings.finds_nuisances or settings.prefilter.name is not None:
        return UNKNOWN
    usable = near_each_other(measured, settings.measured_shape(frames.shape))
    if usable.size < 2:
        return UNKNOWN
    few = spread(usable)
    shifts = measured.shifts[few]
    # Sums of values at the limits of their type are infinite: then nothing is known.
    with np.errstate(over="ignore", invalid="ignore"):
        left = residual_in_place(frames, few, shifts) if settings.roi is None else None
        if left is None:
            images = taken(frames, few, replace(settings, prefilter=Prefilter(), contrast=Contrast()))
            if min(images.shape[1:]) >= BINNED_FROM:
                images, shifts = binned(images), shifts / 2
            left = left_over(images, shifts)
    return replace(left, is_sure=bool(measured.valid(settings)[few].all()))


def left_over(images: Array, shifts: NDArray[np.float64]) -> Residual:
    """Say what float images (n, h, w) leave that are moved by their shifts (n, 2); infinitely much where that is open.

    A change of the light from frame to frame is none of what is left.
    """
    xp = array_namespace(images)
    parts = _common_parts(images.shape[1:], shifts)
    aligned = xp.stack([image[part] for image, part in zip(images, parts, strict=True)])
    count, height, width = aligned.shape
    if count < 2 or min(height, width) < _MIN_OVERLAP:
        return UNKNOWN
    window = fading(height)[:, None] * fading(width)
    # Of magnitude one, squares keep their digits.
    aligned = aligned - aligned.mean(axis=(1, 2), keepdims=True)
    largest = xp.maximum(xp.maximum(aligned.max(), -aligned.min()), np.finfo(aligned.dtype).tiny)
    aligned /= largest
    spectra = _spectra(aligned * xp.asarray(window.astype(aligned.dtype)))
    y, x = np.fft.fftfreq(height), np.fft.rfftfreq(width)
    _move(spectra, np.rint(shifts) - shifts, y, x)
    # By numbers and a slice: a device would count a mask's elements, and be waited for.
    slow = np.flatnonzero(abs(y) < _LOW), slice(np.count_nonzero(x < _LOW))
    gain = np.maximum(gains(_products(spectra[:, slow[0]][:, :, slow[1]])), _MIN_GAIN)
    spectra /= xp.asarray(gain.astype(aligned.dtype))[:, None, None]
    mean = spectra.mean(axis=0)
    spectra -= mean
    squares = _power(spectra).sum(axis=0)
    # Back to where the frames were: there a pattern adds up, be it as white as noise.
    _move(spectra, shifts, y, x)
    powers = xp.stack([_power(spectra.sum(axis=0)) - squares, squares, _power(mean)])
    products, rest, both = to_host(powers).astype(np.float64)
    products, rest = products / (count * (count - 1)), rest / (count - 1)
    both -= rest / count
    plane = _half_plane(height, width)
    sums = LeftSums(
        float(rest[plane.noisy].sum()),
        float((plane.low * both).sum()),
        float((plane.low * rest).sum()),
        float((plane.halves * products).sum()),
    )
    return replace(_of_sums(sums, gain, plane), largest=float(largest))


def residual_in_place(frames: Frames, few: NDArray[np.intp], shifts: NDArray[np.float64]) -> Residual | None:
    """The same of the frames with such numbers, by kernels that read them where they are.

    None where these are no integers in device memory.
    """
    if not isinstance(frames, ArrayFrames) or name_of(frames.dtype) not in INPUT_TYPES or frames.dtype.kind == "f":
        return None
    if not is_device_array(frames.read(0, 1).frames):
        return None
    stack = frames.read(0, frames.count).frames
    if not stack.flags.c_contiguous:
        return None
    side = 2 if min(frames.shape) >= BINNED_FROM else 1
    shifts = shifts / side
    parts = _common_parts((frames.shape[0] // side, frames.shape[1] // side), shifts)
    height, width = (part.stop - part.start for part in parts[0])
    if len(few) < 2 or min(height, width) < _MIN_OVERLAP:
        return UNKNOWN
    corners = [(rows.start, columns.start) for rows, columns in parts]
    on_host = np.column_stack([few, corners, np.rint(shifts) - shifts, shifts])
    xp = array_namespace(stack)
    places = xp.asarray(on_host.astype(np.float64))
    faded = faded_parts(stack, places, (height, width), side, RIM)
    spectra = xp.ascontiguousarray(fft_namespace(faded).rfft2(faded))
    gain = np.maximum(gains(aligned_products(spectra, places, width, _LOW)), _MIN_GAIN)
    return _of_sums(left_sums(spectra, places, gain, width, (_LOW, _HIGH, _ON_AXIS)), gain, _half_plane(height, width))


def _common_parts(shape: tuple[int, int], shifts: NDArray[np.float64]) -> list[tuple[slice, slice]]:
    """Rows and columns of each frame that show what all of them show; of frames that share nothing their first."""
    whole = np.rint(shifts).astype(np.intp)
    low = whole.max(axis=0)
    first = low - whole
    last = first + np.maximum(whole.min(axis=0) + shape - low, 1)
    return [(slice(*rows), slice(*columns)) for rows, columns in np.stack([first, last], axis=2).tolist()]


class _HalfPlane(NamedTuple):
    """Half of a plane of frequencies, as spectra (h, w // 2 + 1) hold it."""

    halves: NDArray[np.float64]
    """Share of each in the plane: of the first column, both halves are seen."""
    low: NDArray[np.float64]
    """The same of low ones, else zero."""
    noisy: NDArray[np.bool_]
    """Where there is noise alone."""
    overlap: float
    """Of the window: what the scatter of a product is more for neighbouring frequencies being alike."""


@functools.lru_cache(maxsize=8)
def _half_plane(height: int, width: int) -> _HalfPlane:
    """For images of a size."""
    window = fading(height)[:, None] * fading(width)
    overlap = float((window**4).mean() / (window**2).mean() ** 2)
    y, x = np.fft.fftfreq(height), np.fft.rfftfreq(width)
    halves = np.where(x > 0, 1.0, 0.5) * np.ones((height, 1))
    low = halves * ((abs(y) < _LOW)[:, None] & (x < _LOW))
    noisy = ((abs(y) > _HIGH)[:, None] | (x > _HIGH)) & (abs(y) > _ON_AXIS)[:, None] & (x > _ON_AXIS)
    return _HalfPlane(halves, low, noisy, overlap)


def _of_sums(sums: LeftSums, gain: NDArray[np.float64], plane: _HalfPlane) -> Residual:
    """Say what sums over spectra mean that were divided by such gains (n,)."""
    if not sums.shared > 0:
        return UNKNOWN
    beyond = int(plane.noisy.sum())
    count, noise, number = len(gain), sums.noise / beyond, float(plane.low.sum())
    # Of faint frames there is more noise now: as if there were fewer of them.
    noises = gain**-2 / np.sum(gain**-2)
    squared = float((noises**2).sum())
    scatter = noise * np.sqrt(plane.overlap * squared * count / (count - 1) * (number + number**2 / beyond))
    of_products = noise * np.sqrt(plane.overlap * (1 - squared) / (count - 1) ** 2 * plane.halves.sum())
    share, shared = sums.rest - number * noise, sums.shared
    return Residual(
        share / shared, scatter / shared, sums.products / shared, of_products / shared, shared / plane.low.size**2
    )


def _spectra(images: Array) -> Array:
    if isinstance(images, np.ndarray):
        # SciPy's FFT, which nothing else in most runs needs, takes longer to load; NumPy's is slow in single precision.
        return np.fft.rfft2(images.astype(np.float64, copy=False))
    return fft_namespace(images).rfft2(images)


def _move(spectra: Array, shifts: NDArray[np.float64], y: NDArray[np.floating], x: NDArray[np.floating]) -> None:
    """Move what spectra (n, h, w) show by shifts (n, 2) up and to the left, in place."""
    xp = array_namespace(spectra)
    down, across = (
        xp.asarray(np.exp(2j * np.pi * part[:, None] * k).astype(spectra.dtype))
        for part, k in zip(shifts.T, (y, x), strict=True)
    )
    spectra *= down[:, :, None]
    spectra *= across[:, None, :]


def _products(spectra: Array) -> NDArray[np.float64]:
    """Products (n, n) of spectra (n, h, w) with each other."""
    flat = spectra.reshape(spectra.shape[0], -1)
    return np.asarray(to_host((flat @ flat.conj().T).real), np.float64)


def _power(spectra: Array) -> Array:
    return spectra.real**2 + spectra.imag**2


def fading(size: int) -> NDArray[np.float64]:
    """Weights (size,) of pixels that fade to zero towards both ends (Tukey's window)."""
    place = (np.arange(size) + 0.5) / size
    to_end = np.minimum(place, 1 - place)
    weights: NDArray[np.float64] = np.sin(np.pi / 2 * np.minimum(to_end / RIM, 1)) ** 2
    return weights


def gains(products: NDArray[np.float64]) -> NDArray[np.float64]:
    """How bright the one scene is in each of n frames, in the mean 1, from their products (n, n) with each other.

    What a frame has with itself counts for nothing, since noise is part of it.
    """
    limits = np.finfo(np.float64)
    products = products / max(float(np.diag(products).mean()), limits.tiny)
    own = np.diag(products)
    others = products - np.diag(own)
    # That of frames without noise, from which few rounds are enough however much they differ.
    gain = np.sqrt(own)
    for _ in range(_GAIN_ROUNDS):
        total = float(gain @ gain)  # of one frame that outshines all others no digit is left without it
        gain = others @ gain / np.maximum(total - gain**2, max(float(limits.eps) * total, float(limits.tiny)))
        if not gain.mean() > 0:
            return np.ones(len(products))
        gain = np.maximum(gain / gain.mean(), _LEAST_GAIN)
    return gain
