"""Whole frames against one image, at full size, half, ...: prepared, looked at through linear motions, refined."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.quality import signal_fraction
from xcorr_app.registration.solver.basis import Basis, slopes_of
from xcorr_app.registration.solver.gauss_newton import Fits, Numbers, Solver, compared
from xcorr_app.registration.solver.sampling import coefficients, sampled_through, shifted_windows
from xcorr_app.registration.warping.device_warp import ndimage_of
from xcorr_app.registration.warping.matrices import Matrix

Floats = NDArray[np.float64]

_MIN_SIDE = 48
"""Pixels that the shorter side of the smallest image has at least."""
_CONVERGED, _COARSE = 1e-3, 20
"""Pixels by which a corner moves in a step after which the motion is settled; times as much is enough on images that
are not the largest; of steps, half."""
MAX_STEPS = 40
_STEPS_WITHOUT_HOLD = 4
"""Steps of a motion that did not settle at half the size, or fits no better there than chance."""
BY_CHANCE = 4.3
"""Deviations of the correlation of noise that the best of ten thousand motions reaches."""
_RIM = 3
_DEGREE = 7
"""Of the polynomials that frames which only shift are interpolated by."""
_SLOPED, _INTERPOLATED = 1, 2
"""Pixels from one that does not count up to which slopes, and what is interpolated, are mostly its."""
_PLAIN = 1e-3, 1e12
"""Largest deviations from the mean whose squares single precision and `1e-12` of a variance leave as they are."""
_PIXELS_TOGETHER = 1 << 26
"""Of the frames that are refined together on a device."""
_SMOOTHING = ((0.97, 0.0), (0.7, 0.7), (0.35, 1.0), (0.0, 1.5))
"""Share of the variance that is no noise, and the sigma in pixels of the Gaussian that noisier images are smoothed by:
noise in the slopes of the reference would pass for signal. By trial on spots and speckle at SNR 20 to 0.5."""


def smoothing_for(clean: float) -> float:
    """Sigma in pixels of the Gaussian for images of whose variance that share is no noise."""
    return next(sigma for above, sigma in _SMOOTHING if clean >= above)


def smoothed(images: Array, sigma: float) -> Array:
    """Images (n, h, w) of float32 under that Gaussian."""
    if sigma == 0:
        return images
    if (xp := array_namespace(images)) is np:
        import cv2

        return np.stack([cv2.GaussianBlur(each, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE) for each in images])
    return ndimage_of(xp).gaussian_filter(images, (0, sigma, sigma), mode="nearest")


def halved(images: Array) -> Array:
    """Means of 2 x 2 pixels of images (n, h, w), as float32; a last odd row or column is left out."""
    height, width = (size // 2 for size in images.shape[1:])
    even = images[:, : 2 * height, : 2 * width].astype(np.float32, copy=False)
    if array_namespace(images) is np:
        import cv2

        return np.stack([cv2.resize(each, (width, height), interpolation=cv2.INTER_AREA) for each in even])
    return even.reshape(-1, height, 2, width, 2).mean(axis=(2, 4))


def centred(frames: Array, counts: Array | None = None) -> tuple[Array, Array]:
    """Frames (n, h, w) as float32 without their means, zero where pixels are not finite or do not count.

    Times a power of two where squares would not be (heights in metres, fluxes). And which of them (n,) are damaged:
    hold pixels that are not finite where they count.
    """
    xp = array_namespace(frames)
    finite = xp.isfinite(frames) if frames.dtype.kind == "f" else None
    if counts is None and (finite is None or bool(finite.all())):
        mean, damaged = frames.mean(axis=(1, 2), dtype=np.float64)[:, None, None], xp.zeros(len(frames), bool)
        if frames.dtype.kind != "f" and frames.dtype.itemsize <= 2:  # which float32 holds as they are
            return frames.astype(np.float32) - mean.astype(np.float32), damaged
        values = frames - mean
    else:
        everything = xp.ones(frames.shape, bool) if counts is None else counts
        known = everything if finite is None else everything & finite
        total = xp.where(known, frames, 0).sum(axis=(1, 2), dtype=np.float64)
        mean = total / xp.maximum(known.sum(axis=(1, 2)), 1)
        values, damaged = xp.where(known, frames - mean[:, None, None], 0.0), (known != everything).any(axis=(1, 2))
    largest = xp.maximum(values.max(axis=(1, 2)), -values.min(axis=(1, 2)))
    plain = (largest > _PLAIN[0]) & (largest < _PLAIN[1]) | (largest == 0)
    values *= xp.exp2(-xp.floor(xp.log2(xp.where(plain, 1.0, largest))))[:, None, None]
    return values.astype(np.float32), damaged


def inner(counts: Array, rim: int) -> Array:
    """Which pixels (n, h, w) count with all that are up to `rim` pixels away, along both axes."""
    for axis in (1, 2):
        size, found = counts.shape[axis], counts.copy()
        for by in range(-rim, rim + 1):
            to, of = (slice(max(-sign * by, 0), size - max(sign * by, 0)) for sign in (1, -1))
            at = (slice(None),) * axis
            found[(*at, to)] &= counts[(*at, of)]
        counts = found
    return counts


@dataclass(frozen=True)
class Level:
    """A reference at one size."""

    image: Array
    """(h, w) of float32."""
    factor: int
    changes: Array
    """(1, k, h w) by the numbers of a basis."""
    counts: Array | None = None
    """(h, w) of bool: pixels that count with what is around them."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self.image.shape[0]), int(self.image.shape[1])


def _levels_of(image: Array, basis: Basis, counts: Array | None, *, full_size_alone: bool) -> list[Level]:
    """A reference at the sizes of a `Pyramid`."""
    found, factor = [], 1
    while True:
        near = None if counts is None else inner(counts[None], _SLOPED)[0]
        found.append(Level(image, factor, basis.changes(slopes_of(image[None])), near))
        if full_size_alone or min(image.shape) < 2 * _MIN_SIDE:
            return found
        image, factor = halved(image[None])[0], 2 * factor
        counts = None if counts is None else halved(counts[None])[0] == 1


class FrameView:
    """Frames (T, h, w), each of them perhaps several times, as they are compared with a reference."""

    rims: tuple[float, float] = (_RIM, _RIM)
    """Pixels along the edges of the reference, and of a frame, that are not compared."""

    def __init__(
        self, level: Level, frames: Array, numbers: Numbers, counts: Array | None = None, *, shifts: bool = False
    ) -> None:
        self.reference, self.changes = level.image[None], level.changes
        self._level, self._numbers, self._shifts = level, numbers, shifts
        self._splines = frames if shifts else coefficients(frames)
        self._counts = None if counts is None else inner(counts, _INTERPOLATED)

    def weight(self, motions: Matrix, items: Numbers) -> Array:
        """Pixels away from the edges of the reference, shown away from the frame's."""
        xp, shape = array_namespace(self.reference), self._level.shape
        half = [[(size - 1) / 2 - rim for rim in self.rims] for size in shape]
        y, x = (xp.arange(size, dtype=np.float32) - (size - 1) / 2 for size in shape)
        y = y[:, None]
        matrix = xp.asarray(motions[:, :2, :, None, None].astype(np.float32))
        places = [y + matrix[:, 0, 2], x + matrix[:, 1, 2]]  # of shifts, each along its own axis alone
        if not self._shifts:
            places = [(each[0] * y + each[2]) + each[1] * x for each in matrix.transpose(1, 2, 0, 3, 4)]
        along = [
            (abs(own) <= of_reference) & (abs(each) <= of_frame)
            for own, each, (of_reference, of_frame) in zip((y, x), places, half, strict=True)
        ]
        inside = along[0] & along[1]
        inside = inside if self._level.counts is None else inside & self._level.counts
        if self._counts is not None:
            at = [
                xp.clip(xp.rint(place + np.float32((size - 1) / 2)), 0, size - 1).astype(np.intp)
                for place, size in zip(places, shape, strict=True)
            ]
            inside &= self._counts[xp.asarray(self._numbers[items])[:, None, None], at[0], at[1]]
        return inside.astype(np.float32)

    def warped(self, motions: Matrix, items: Numbers) -> Array:
        """Frames through motions."""
        numbers = self._numbers[items]
        if self._shifts:
            nowhere = np.zeros((len(items), 2), np.intp)
            shift, size = motions[:, :2, 2], self._level.shape
            return shifted_windows(self._splines, _DEGREE, nowhere, size, shift, numbers, polynomials=True)
        return sampled_through(self._splines[array_namespace(self._splines).asarray(numbers)], motions)


class Pyramid:
    """Refines motions of so many frames against an image (1, h, w), both smoothed as its noise asks, at several sizes.

    These are the full one, half, ... as far as that makes sense, or `full_size_alone`.
    """

    def __init__(
        self, image: Array, basis: Basis, counts: Array | None = None, count: int = 1, *, full_size_alone: bool = False
    ) -> None:
        self.smoothing, self._basis = smoothing_for(float(signal_fraction(image)[0])), basis
        self.levels = _levels_of(smoothed(image, self.smoothing)[0], basis, counts, full_size_alone=full_size_alone)
        self._together = together(count, image)

    def sizes(self, frames: Array) -> list[Array]:
        """Frames (T, h, w) at the sizes of the levels."""
        sizes = [smoothed(frames, self.smoothing)]
        while len(sizes) < len(self.levels):
            sizes.append(halved(sizes[-1]))
        return sizes

    def refined(
        self,
        sizes: list[Array],
        numbers: Numbers,
        motions: Matrix,
        counts: Array | None = None,
        most_steps: int = MAX_STEPS,
        without_hold: int = _STEPS_WITHOUT_HOLD,
    ) -> Fits:
        """Refine motions (n, 3, 3), each of the frame of that number; the smallest size goes first.

        In at most so many steps, and in fewer what finds no hold at half the size: in none, it stays there.

        The covariances are those of residuals as they are; `counts` (T, h, w) says which pixels of the frames count.
        """
        if len(numbers) != self._together:
            parts = in_blocks(len(numbers), self._together)
            found = [
                self.refined(sizes, numbers[part], motions[part], counts, most_steps, without_hold) for part in parts
            ]
            return Fits(*(np.concatenate(each)[: len(numbers)] for each in zip(*found, strict=True)))
        all_counts = [counts]
        while counts is not None and len(all_counts) < len(sizes):
            all_counts.append(halved(all_counts[-1]) == 1)
        motions, steps = motions.copy(), np.full(len(motions), most_steps)
        for number in range(len(self.levels) - 1, -1, -1):
            level, fine = self.levels[number], number == 0
            motions[:, :2, 2] /= level.factor
            counted = None if counts is None else all_counts[number]
            view = FrameView(level, sizes[number], numbers, counted, shifts=self._basis.is_shift)
            solver = Solver(view, self._basis, _CONVERGED * (1 if fine else _COARSE))
            fits = solver.fitted(motions, steps if fine else np.minimum(steps, most_steps // 2))
            motions = fits.motion
            motions[:, :2, 2] *= level.factor
            # What found no hold at half the size finds one soon or not at all.
            hold = fits.converged & (fits.score >= BY_CHANCE / np.sqrt(np.maximum(fits.pixels, 1)))
            steps = np.where(hold, most_steps, np.minimum(most_steps, without_hold))
            motions[np.isnan(fits.score)] = np.nan
            if not steps.any():
                return fits._replace(motion=motions, converged=hold)
        covariance = solver.scatter(np.nan_to_num(motions), np.arange(len(numbers)))
        covariance[~fits.definite] = np.nan
        return fits._replace(motion=motions, covariance=covariance)


def together(count: int, image: Array) -> int:
    """How many frames of a stack of so many are refined together: one on the host, whose cache holds it.

    On a device always so many, however frames are cut into chunks: products of matrices depend on how many there are.
    """
    if array_namespace(image) is np:
        return 1
    most = max(1, _PIXELS_TOGETHER // int(image.size))
    return min(most, 1 << (count - 1).bit_length())


def in_blocks(count: int, together: int) -> list[Numbers]:
    """Numbers of so many items in blocks of one size, the last one filled up with the last item."""
    return [np.minimum(np.arange(first, first + together), count - 1) for first in range(0, count, together)]


def score_of(level: Level, frames: Array, motions: Matrix) -> Floats:
    """Correlation (n,) of frames (n, h, w) of that size with the reference over their overlap under motions."""
    items = np.arange(len(frames))
    view = FrameView(level, frames, items)
    return compared(view.reference, view.warped(motions, items), view.weight(motions, items)).score
