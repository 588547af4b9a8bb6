"""Shading that stands still: vignetting, a glow, an uneven background, brighter than the scene that moves over it.

Such light holds shifts near zero, smoothly, so that no fixed pattern and no second motion is seen, and frames that lie
on each other by their shading leave little. It is suspected where the smooth part of a frame, a polynomial, is most of
what the frame shows; it is told from a large object by whether it stays where it is while what is left of the frames
moves. Each frame then loses that common shading, as bright as it is in this frame: light may flicker.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.measuring.measured import ShiftColumns, Trial, near_each_other, spread
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import Chunk, FloatFramesOver, Frames, HeldFrames, PickedFrames
from xcorr_app.registration.stack.prefilter import Contrast

_DEGREE = 6
"""Of the polynomial: a fourth power of a cosine, as lenses have, to a thousandth."""
_MIN_SIDE = 48
"""Rows and columns below which a scene is as smooth as the polynomial."""
_SIDE = 64
"""Rows and columns of bins that are enough to see it."""
_MAX_SHARE = 0.5
"""Of the variance of binned frames: a smooth part that is less bends shifts by little."""
_SAMPLED_FRAMES = 9
_OFF, _MAX_SIGMA_RATIO = 3.0, 0.8
"""Standard errors by which shifts without it are larger than those measured, all together; or their standard errors
over those before, from which they are better in any case."""
_NEARER = 0.02
"""Of the shifts without it, the share by which those before may be larger."""
_HELD = 3.0
"""Pixels of motion up to which such light may have held the shifts."""
_STILL = 0.5
"""Of what smooth parts would differ by if they moved with the rest, the share that they differ by at most."""


@dataclass(frozen=True)
class UnshadedFrames(FloatFramesOver):
    """Frames less a polynomial that stands still, as bright as it is in each."""

    shading: NDArray[np.float64]
    """(k, k) coefficients of its terms."""

    def changed(self, chunk: Chunk) -> Array:
        """Take the shading off; pixels that are no numbers stay so."""
        frames, xp = chunk.frames, array_namespace(chunk.frames)
        known = xp.isfinite(frames)
        number = xp.maximum(known.sum(axis=(1, 2), keepdims=True), 1).astype(self.dtype)
        # Divided before they are summed: the sum of large values must not overflow.
        frames -= (xp.where(known, frames, 0) / number).sum(axis=(1, 2), keepdims=True)
        down, across = (xp.asarray(_polynomials(side).astype(self.dtype)) for side in self.shape)
        shading = xp.asarray((self.shading / np.sqrt((self.shading**2).sum())).astype(self.dtype))
        terms = down.T / down.shape[0] @ xp.where(known, frames, 0) @ across / across.shape[0]
        terms = shading * (terms * shading).sum(axis=(1, 2), keepdims=True)
        return frames - down @ terms @ across.T

    @property
    def note(self) -> str:
        """What was done, in words."""
        return (
            "Uneven brightness stands still while the scene moves (vignetting, illumination, background), and is most "
            "of what frames show: it was taken off for measuring."
        )


def unshaded(frames: Frames, measured: ShiftColumns, settings: Settings, measure: Trial) -> UnshadedFrames | None:
    """Frames without their common shading; None where smooth parts are little, or move with the scene.

    `measured` are frames as they are; `measure` measures them against one. Not asked where a part of the frame is
    measured alone: the polynomial is that of all of it.
    """
    if not settings.by_default or settings.roi is not None or min(frames.shape) < _MIN_SIDE:
        return None
    usable = near_each_other(measured, frames.shape)
    if usable.size < 2 or _share(_binned(frames.read(int(usable[0]), int(usable[0]) + 1).frames)[0]) < _MAX_SHARE:
        return None
    some = spread(usable, _SAMPLED_FRAMES)
    few = HeldFrames.of(PickedFrames(frames, tuple(some.tolist())))
    images = _binned(few.chunk.frames)
    before = (measured.shifts[some] - measured.shifts[some[0]])[1:]
    if float(np.abs(before).max()) > _HELD and not _stands_still(images[0], images[1:], before, frames.shape):
        return None
    shading = np.mean([_terms(image) for image in images], axis=0)
    plain = replace(settings, contrast=Contrast(), smooth_time=1)
    found = measure(UnshadedFrames(few, shading), "first", plain)
    shifts = found.shifts[1:]
    sure = found.valid(settings)[1:]
    if 2 * sure.sum() <= sure.size:
        return None
    shifts, before, sigma, sigma_before = (
        each[sure] for each in (shifts, before, found.sigma[1:], measured.sigma[some[1:]])
    )
    # What stands still holds shifts near zero: without it they are larger, or else it was not that.
    larger = float((shifts * (shifts - before) - sigma**2).sum())
    beyond_chance = larger > _OFF * np.sqrt((shifts**2 * sigma**2).sum())
    nearer_zero = larger < -_NEARER * float((shifts**2).sum())
    if nearer_zero or not (beyond_chance or np.median(sigma) < _MAX_SIGMA_RATIO * np.median(sigma_before)):
        return None
    still = _stands_still(images[0], images[1:][sure], shifts, frames.shape)
    return UnshadedFrames(frames, shading) if still else None


def _stands_still(
    first: NDArray[np.float64], others: NDArray[np.float64], shifts: NDArray[np.float64], shape: tuple[int, int]
) -> bool:
    """Whether smooth parts of binned frames (n, h, w) are that of the first, and not that moved by shifts (n, 2)."""
    still = _smooth(first)
    here = moved = 0.0
    for image, shift in zip(others, shifts, strict=True):
        smooth = _smooth(image)
        # What it shows at a place, the first would show where the shift puts that.
        at = [_places(side) + 2 * d / length for side, d, length in zip(image.shape, shift, shape, strict=True)]
        inside = np.ix_(*(np.abs(places) <= 1 for places in at))
        if smooth[inside].size:
            here += _unlike(smooth[inside], still[inside])
            moved += _unlike(smooth[inside], _smooth(first, at)[inside])
    return here < _STILL * moved


def _unlike(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Squares that one image leaves of another, whatever the brightness of both."""
    one, other = one - one.mean(), other - other.mean()
    squares = float((other**2).sum())
    gain = float((one * other).sum()) / squares if squares > 0 else 0.0
    return float(((one - gain * other) ** 2).sum())


def _share(image: NDArray[np.float64]) -> float:
    """Share of the variance of an image that its smooth part has; 0 of a flat one."""
    variance = float(image.var())
    return float(_smooth(image).var()) / variance if variance > 0 and np.isfinite(variance) else 0.0


def _smooth(image: NDArray[np.float64], at: list[NDArray[np.float64]] | None = None) -> NDArray[np.float64]:
    """Polynomial that is nearest to an image (h, w), there or at other places along each axis."""
    places = at or [_places(side) for side in image.shape]
    down, across = (_polynomials(side, tuple(some)) for side, some in zip(image.shape, places, strict=True))
    return np.asarray(down @ _terms(image) @ across.T)


def _terms(image: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coefficients (k, k) of the polynomial that is nearest to an image (h, w), alike for bins of any size."""
    down, across = (_polynomials(side) / side for side in image.shape)
    i, j = np.ogrid[: _DEGREE + 1, : _DEGREE + 1]
    return np.asarray((down.T @ image @ across) * (i + j <= _DEGREE))


@lru_cache(64)
def _polynomials(side: int, at: tuple[float, ...] | None = None) -> NDArray[np.float64]:
    """Polynomials (places, k), orthogonal over so many pixels along an axis, of mean square 1; there or elsewhere."""
    legendre = np.polynomial.legendre.legvander
    here = legendre(_places(side), _DEGREE)
    upper = np.linalg.qr(here)[1]
    orthogonal = np.linalg.inv(upper * np.sign(np.diag(upper))[:, None]) * np.sqrt(side)
    return np.asarray((here if at is None else legendre(np.array(at), _DEGREE)) @ orthogonal)


def _places(side: int) -> NDArray[np.float64]:
    """Middles of so many pixels in an axis from -1 to 1."""
    return (2 * np.arange(side) + 1) / side - 1


def _binned(frames: Array) -> NDArray[np.float64]:
    """Frames (n, h, w) less their means, in bins of pixels, on the host; what is no number counts as the mean."""
    xp = array_namespace(frames)
    count, height, width = frames.shape
    rows, columns = (max(1, side // _SIDE) for side in (height, width))
    part = frames[:, : height // rows * rows, : width // columns * columns].astype(np.float64)
    known = xp.isfinite(part)
    part = part - (xp.where(known, part, 0) / part[0].size).sum(axis=(1, 2), keepdims=True)
    part = xp.where(known, part, 0).reshape(count, height // rows, rows, width // columns, columns)
    return np.asarray(to_host(part.mean(axis=2).mean(axis=3)))
