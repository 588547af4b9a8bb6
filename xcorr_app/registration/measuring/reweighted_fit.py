"""Sub-pixel shifts where parts of the scene come and go: Gauss-Newton by iteratively re-weighted least squares.

A spot that is lit in one of two images only is no motion, but it bends the peak of their correlation by hundredths of a
pixel, and tiles around it differ. Here pixels in which frame and reference differ by more than their noise explains
lose their weight (robust least squares: Holland and Welsch 1977, doi 10.1080/03610927708827533), and what is left is
fitted: shift, gain and offset. Noise is what the two differ by as a rule (the median absolute deviation) where they
are as bright as there, since photons scatter more on bright parts. Differences are smoothed before they are judged, so
that faint spots are told from noise; what is fitted is not.

Of the reference, g and its slopes D, smoothed by the weighting's kernel (``measuring/interpolated.py``), even where too
little is noise for a plane to be weighted: slopes of spots that are wide for their noise show mostly that. Of
the frame at the present shift, v of gain a and its slopes V. With r = v - level - a g the step solves

    (sum w D V^T) step = sum w D r

together with corrections of gain and level. The noise of V has nothing to do with that of D, so that noise makes steps
no shorter. Standard errors are of the scatter of w D r among tiles, as in ``standard_error/uncertainty.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import standardize, working_dtype
from xcorr_app.filtering import named
from xcorr_app.filtering.convolve import filter_frames
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.measuring.interpolated import Template, has_inside, interpolated

FINELY_NOISY = 0.005
"""Share of noise in the variance from which slopes are smoothed: they show it sooner than what they are slopes of."""
_SMOOTHING = named.gaussian(2.0)
"""Pixels over which differences are averaged before they are judged."""
_NOISE, _CHANGE = 2.0, 4.0
"""Deviations of the noise up to which a difference has full weight, and from which it has none. What noise alone does
hardly bends these weights, so that standard errors need not know how they depend on the shift."""
_LEVELS = 16
"""Of brightness, whose noise is estimated each by itself."""
_SAMPLED = 7
"""One of so many pixels tells the noise."""
_MIN_NOISE = 2e-3
"""Share of the deviation of the reference that differences may have by interpolation alone."""
_FEWEST, _MAX_STEPS = 3, 10
_SETTLED, _NEGLIGIBLE = 2e-4, 0.05
"""Step after which weights and shift are settled, in pixels and as a share of the standard error."""
_UNCHANGED = 1e-5
"""Pixels by which a shift differs from the one given for rounding alone."""
_FARTHEST = 0.5
"""Pixels from the shift given beyond which something else was found."""
_TILES = 12
"""Along each axis, for standard errors."""
_MIN_TILES = 16
_LARGEST_CONDITION = 1e6
"""Of the equations of a step: beyond, slopes have one direction only, or there are none."""


@dataclass(frozen=True)
class Fit:
    """Shifts (n, 2) in pixels and their standard errors; NaN where none was found."""

    shift: NDArray[np.float64]
    sigma: NDArray[np.float64]

    @classmethod
    def empty(cls, count: int) -> Fit:
        """Nothing found yet of `count` frames."""
        return cls(np.full((count, 2), np.nan), np.full((count, 2), np.nan))


def fit_reweighted(images: Array, frames: Array, shift: NDArray[np.float64], kernel: NDArray[np.float64] | None) -> Fit:
    """Refine shifts (n, 2), to be added to frames (n, h, w) to land on images (1 or n, h, w).

    The kernel weights frequencies, see :mod:`xcorr_app.correlation.weighting`.
    """
    fit = Fit.empty(shift.shape[0])
    if not has_inside(images):
        return fit
    template = Template(_standard(images), kernel)
    for i in np.flatnonzero(np.isfinite(shift).all(axis=1)):
        part = slice(i, i + 1)
        fit.shift[part], fit.sigma[part] = _fitted(*template.taken(part), _standard(frames[part]), shift[part])
    return fit


def note(reweighted: NDArray[np.bool_]) -> str:
    """Say how many frames (T,) were measured so."""
    return (
        f"In {int(reweighted.sum())} of {reweighted.size} frames parts of the picture come and go or move otherwise: "
        "pixels in which a frame differs from the reference by more than noise count less."
    )


def _fitted(
    images: list[Array], weighted: list[Array], frame: Array, shift: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shift (1, 2) and standard error of one frame (1, h, w), NaN where there is none."""
    nothing = np.full((1, 2), np.nan), np.full((1, 2), np.nan)
    reference, smooth = images[0], _smoothed(images[0])
    place, weights = -shift, None
    for number in range(_MAX_STEPS):
        values, inside = interpolated(frame, place)
        if not bool(inside.any()):
            return nothing
        smooth_values = _smoothed(values)
        gain, level = _gain_and_level(smooth_values, smooth, inside if weights is None else weights)
        if not (np.isfinite(gain) and gain > 0):
            return nothing
        values, smooth_values = (values - level) / gain, (smooth_values - level) / gain
        weights = inside * _weights(smooth_values - smooth, smooth_values + smooth, inside, smooth)
        moments = _Moments.of(weights, weighted, values, reference)
        step, sigma = moments.step(), moments.standard_error()
        place = place - step
        if not np.abs(place + shift).max() <= _FARTHEST:
            return nothing
        if number + 1 >= _FEWEST and np.abs(step).max() <= max(_SETTLED, _NEGLIGIBLE * float(sigma.max())):
            return np.where(np.abs(place + shift) < _UNCHANGED, shift, -place), sigma[None]
    return nothing


@dataclass(frozen=True)
class _Moments:
    """What a step follows from: sums over the image of what is fitted, times the steepest-descent images."""

    matrix: NDArray[np.float64]
    """(4, 4) of slopes, one, and reference by the same of the frame."""
    tiles: NDArray[np.float64]
    """(K, 4) sums over tiles of each of them times what frame and reference do not share."""

    @classmethod
    def of(cls, weights: Array, weighted: list[Array], values: Array, reference: Array) -> _Moments:
        """Sums (1, h, w) of one frame at the present shift, brought to the reference's gain and level."""
        xp = array_namespace(values)
        one = xp.ones_like(values)
        frame = [xp.gradient(values, axis=1), xp.gradient(values, axis=2), one, reference]
        descent = [weights * each for each in (*weighted[1:], one, weighted[0])]
        # Row by row, and not by BLAS, whose threads would contend with those that measure.
        rows = [xp.einsum("tyx,tyx->y", each, other) for each in descent for other in frame]
        matrix = to_host(xp.stack(rows)).sum(axis=1, dtype=np.float64).reshape(4, 4)
        rest = values - reference
        return cls(matrix, np.stack([_tile_sums(each * rest) for each in descent], axis=1))

    def step(self) -> NDArray[np.float64]:
        """Step (2,) in pixels; NaN where there is none."""
        if not self._is_regular():
            return np.full(2, np.nan)
        return np.asarray(np.linalg.solve(self.matrix, self.tiles.sum(axis=0))[:2])

    def standard_error(self) -> NDArray[np.float64]:
        """Of the shift (2,), from the scatter among tiles; NaN where they are few."""
        count = self.tiles.shape[0]
        if count < _MIN_TILES or not self._is_regular():
            return np.full(2, np.nan)
        inverse = np.linalg.inv(self.matrix)
        centred = self.tiles - self.tiles.mean(axis=0)
        covariance = inverse @ (centred.T @ centred) @ inverse.T * (count / (count - 4))
        return np.sqrt(np.diag(covariance)[:2])

    def _is_regular(self) -> bool:
        size = np.sqrt(np.abs(np.diag(self.matrix)))
        regular = np.isfinite(self.matrix).all() and (size > 0).all()
        return bool(regular and np.linalg.cond(self.matrix / size[:, None] / size) < _LARGEST_CONDITION)


def _gain_and_level(values: Array, reference: Array, weights: Array) -> tuple[float, float]:
    """Gain and level of values over the reference's: of their deviations, which noise in either leaves alike."""
    total = float(weights.sum(dtype=np.float64))
    means = [float((weights * each).sum(dtype=np.float64)) / total for each in (values, reference)]
    squares = [
        float((weights * (each - mean) ** 2).sum(dtype=np.float64))
        for each, mean in zip((values, reference), means, strict=True)
    ]
    gain = float(np.sqrt(squares[0] / squares[1])) if squares[1] > 0 else np.nan
    return gain, means[0] - gain * means[1]


def _weights(rest: Array, brightness: Array, inside: Array, reference: Array) -> Array:
    """Weights (1, h, w) of pixels by how far they differ, over the noise of those as bright."""
    xp = array_namespace(rest)
    there = inside.ravel()[::_SAMPLED] > 0
    differs, bright = (each.ravel()[::_SAMPLED][there] for each in (abs(rest), brightness))
    size = max(differs.size // _LEVELS, 1)
    order = xp.argsort(bright)[: differs.size // size * size]
    noise = 1.4826 * xp.median(differs[order].reshape(-1, size), axis=1)
    levels = xp.median(bright[order].reshape(-1, size), axis=1)
    noise = xp.maximum(noise, _MIN_NOISE * float(reference.std()))
    scale = xp.interp(brightness.ravel(), levels, noise).reshape(rest.shape).astype(rest.dtype)
    beyond = xp.clip((abs(rest) / scale - _NOISE) / (_CHANGE - _NOISE), 0, 1)
    return (1 - beyond * beyond) ** 2


def _smoothed(images: Array) -> Array:
    smooth: Array = filter_frames(images, _SMOOTHING, dtype="same", count=False)[0]
    return smooth


def _standard(images: Array) -> Array:
    return standardize(images, working_dtype(images)).values


def _tile_sums(values: Array) -> NDArray[np.float64]:
    """Sums (K,) over square tiles of an image (1, h, w); what is left at its ends belongs to the last of them."""
    xp = array_namespace(values)
    size = max(min(values.shape[1:]) // _TILES, 1)
    starts = [xp.arange(n // size) * size for n in values.shape[1:]]
    sums = xp.add.reduceat(xp.add.reduceat(values[0].astype(np.float64), starts[0], axis=0), starts[1], axis=1)
    found: NDArray[np.float64] = to_host(sums).ravel()
    return found
