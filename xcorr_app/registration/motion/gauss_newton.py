"""Motions refined over the whole overlap: inverse-compositional Gauss-Newton on the zero-mean normalised correlation.

The frame is looked at through the motion found so far, and a small motion is searched for that brings the reference
nearest to it, whatever the frame's gain and offset: a least-squares problem in the numbers of the model, a gain and an
offset. Its inverse is then put before the motion. The slopes are those of the reference and stay the same (Baker and
Matthews 2004, doi 10.1023/B:VISI.0000011205.11775.fd; Pan, Li and Tong 2013, doi 10.1007/s11340-013-9717-6). Images of
half, a quarter ... the size go before, so that a start a few pixels away is near enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.motion.models import Model
from xcorr_app.registration.warping.matrices import Matrix
from xcorr_app.registration.warping.ndimage import ndimage_of
from xcorr_app.registration.warping.warp import coefficients, seen_through

_SMALLEST = 48
"""Pixels that the shorter side of the smallest image has at least."""
SETTLED = 1e-3
"""Pixels by which a corner moves in a step after which the motion is settled."""
COARSE = 20
"""Times as much is enough on images that are not the largest; of steps, half."""
MAX_STEPS = 40
_STEPS_WITHOUT_HOLD = 4
"""Steps of a motion that did not settle at half the size, or fits no better there than chance."""
_BY_CHANCE = 4.3
"""Deviations of the correlation of noise that the best of ten thousand motions reaches."""
_RIM = 3
"""Pixels along the edges of both images that are not compared."""
FEWEST = 64
_BLOCK = 16
"""Rows and columns of a block, larger than residuals are alike over."""
CONDITION = 1e-7
"""Smallest eigenvalue of a scaled normal matrix, over the largest: below, some motion changes nothing."""

_SMOOTHING = ((0.97, 0.0), (0.7, 0.7), (0.35, 1.0), (0.0, 1.5))
"""Share of the variance that is no noise, and the sigma in pixels of the Gaussian that noisier images are smoothed by:
noise in the slopes of the reference would pass for signal. By trial on spots and speckle at SNR 20 to 0.5."""


@dataclass(frozen=True)
class Level:
    """A reference at one size: its pixels and first-order changes, flat, and coordinates about its middle."""

    image: Array
    changes: Array
    """(k, h, w): one for each number of the model."""
    shape: tuple[int, int]
    factor: int


@dataclass(frozen=True)
class Fit:
    """A refined motion and how well it holds."""

    motion: Matrix
    score: float
    """Zero-mean normalised correlation over the overlap; NaN where there is no overlap to speak of."""
    settled: bool
    covariance: NDArray[np.float64]
    """(k, k) of the model's numbers, pixels and radians, from what the frame does not share with the reference."""
    overlap: float
    """Share of the reference that was compared."""
    definite: bool
    """Whether every number of the model changes the image."""


def smoothing_for(clean: float) -> float:
    """Sigma in pixels of the Gaussian for images of whose variance that share is no noise."""
    return next(sigma for above, sigma in _SMOOTHING if clean >= above)


def smoothed(image: Array, sigma: float) -> Array:
    """An image (h, w) after that Gaussian."""
    return image if sigma == 0 else ndimage_of(array_namespace(image)).gaussian_filter(image, sigma, mode="nearest")


def levels_of(reference: Array, model: Model) -> list[Level]:
    """The reference at full size, half, ... as far as that makes sense."""
    found, image, factor = [], reference, 1
    while True:
        found.append(_level(image, model, factor))
        if min(image.shape) < 2 * _SMALLEST:
            return found
        image, factor = halved(image), 2 * factor


def halved(image: Array) -> Array:
    """Means of 2 x 2 pixels; a last odd row or column is left out."""
    height, width = (size // 2 * 2 for size in image.shape)
    return image[:height, :width].reshape(height // 2, 2, width // 2, 2).mean(axis=(1, 3))


def refined(levels: list[Level], model: Model, frames: list[Array], motion: Matrix, most_steps: int = MAX_STEPS) -> Fit:
    """Refine a motion of a frame, given at the sizes of `levels`, in up to so many steps; the smallest goes first."""
    fit: Fit | None = None
    has_hold = True
    for level, frame in zip(reversed(levels), reversed(frames), strict=True):
        at_level = motion.copy()
        at_level[:2, 2] /= level.factor
        fine, steps = level.factor == 1, most_steps if level.factor == 1 else most_steps // 2
        # What found no hold at half the size finds one soon or not at all.
        steps = steps if has_hold else min(steps, _STEPS_WITHOUT_HOLD)
        fit = _at_level(level, model, coefficients(frame), at_level, steps, fine=fine)
        if np.isnan(fit.score):
            return fit
        has_hold = fit.settled and not _is_chance(fit, level)
        motion = fit.motion.copy()
        motion[:2, 2] *= level.factor
    assert fit is not None  # noqa: S101 - there is at least one level
    return fit


def _is_chance(fit: Fit, level: Level) -> bool:
    """Whether unrelated images of that size would correlate as well after a search."""
    return bool(fit.score < _BY_CHANCE / np.sqrt(max(fit.overlap * level.image.size, 1.0)))


def score_of(level: Level, frame: Array, motion: Matrix) -> float:
    """Correlation of a frame of that size with the reference over their overlap under a motion."""
    inside = _inside(level, motion)
    return _correlation(level.image[inside], seen_through(coefficients(frame), motion)[inside])


def _at_level(level: Level, model: Model, splines: Array, motion: Matrix, most_steps: int, *, fine: bool) -> Fit:
    xp = array_namespace(splines)
    settled, definite = False, True
    count = level.changes.shape[0]
    nothing = np.full((count, count), np.nan)
    for _ in range(most_steps):
        inside = _inside(level, motion)
        pixels = int(inside.sum())
        if pixels < FEWEST:
            return Fit(motion, np.nan, settled=False, covariance=nothing, overlap=0.0, definite=definite)
        values = seen_through(splines, motion)
        normal, right, definite = _problem(xp, level, values, inside)
        if not definite:
            break
        numbers: NDArray[np.float64] = np.linalg.solve(normal, right).astype(np.float64)
        if not numbers[count] > 0:  # turned inside out: nothing to hold on to
            break
        change = np.linalg.inv(model.step(numbers[:count]))
        moved = corner_moves(motion @ change - motion, level.shape)
        motion = motion @ change
        if moved < SETTLED * (1 if fine else COARSE):
            settled = True
            break
    inside = _inside(level, motion)
    pixels = int(inside.sum())
    if pixels < FEWEST:
        return Fit(motion, np.nan, settled=False, covariance=nothing, overlap=0.0, definite=definite)
    values = seen_through(splines, motion)
    score = _correlation(level.image[inside], values[inside])
    covariance = _covariance(xp, level, model, values, inside) if fine and definite else nothing
    return Fit(motion, score, settled, covariance, pixels / level.image.size, definite)


def corner_moves(change: Matrix, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Pixels (...), along an axis, by which the corner that a change (..., 3, 3) moves most is moved."""
    corners = np.array([[y, x, 1.0] for y in (-0.5, 0.5) for x in (-0.5, 0.5)]) * [*shape, 1.0]
    found: NDArray[np.float64] = np.abs(change[..., :2, :] @ corners.T).max(axis=(-1, -2))
    return found


def _problem(
    xp: Any, level: Level, values: Array, inside: Array
) -> tuple[NDArray[np.float64], NDArray[np.float64], bool]:
    """Normal equations for (-numbers of the model, gain, offset): reference = gain frame + offset - changes."""
    weight = inside.astype(values.dtype)
    images = xp.concatenate([-level.changes, values[None], xp.ones_like(values)[None]]).reshape(
        level.changes.shape[0] + 2, -1
    )
    weighted = images * weight.reshape(-1)
    normal = to_host(weighted @ images.T).astype(np.float64)
    right = to_host(weighted @ level.image.reshape(-1)).astype(np.float64)
    return normal, right, bool(are_definite(normal[None], right[None])[0])


def are_definite(normal: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which of normal equations (n, k, k) and (n, k) have one solution."""
    scale = np.sqrt(np.maximum(np.diagonal(normal, axis1=1, axis2=2), 1e-300))
    known: NDArray[np.bool_] = np.isfinite(np.concatenate([normal, right[:, None]], axis=1)).all(axis=(1, 2))
    scaled = normal / scale[:, None] / scale[:, :, None]
    eigenvalues = np.linalg.eigvalsh(np.where(known[:, None, None], scaled, 0.0))
    found: NDArray[np.bool_] = known & (eigenvalues[:, 0] > CONDITION * eigenvalues[:, -1])
    return found


def _covariance(xp: Any, level: Level, model: Model, values: Array, inside: Array) -> NDArray[np.float64]:
    """Covariance of the numbers of the model: that of least squares, for residuals as these are."""
    normal, right, _ = _problem(xp, level, values, inside)
    numbers = np.linalg.solve(normal, right)
    count = level.changes.shape[0]
    gain = float(numbers[count])
    residual = xp.where(inside, level.image - gain * values - float(numbers[count + 1]), 0.0)
    images = [*-level.changes, values, xp.ones_like(values)]
    # Slopes of frame and reference have the scene in common, and no noise.
    slopes = _level(values, model, 1).changes * -gain
    weighted = xp.stack([each * inside for each in images]).reshape(count + 2, -1)
    of_both = to_host(weighted @ slopes.reshape(count, -1).T).astype(np.float64)
    inverse = np.linalg.inv(np.hstack([of_both, normal[:, count:]]))
    # Neighbouring residuals are alike (interpolation, smoothing, structure), and larger on bright parts: sums over
    # blocks show how much their sum scatters (White 1980, doi 10.2307/1912934, with blocks as clusters).
    sums = np.stack([_block_sums(each * residual) for each in images])
    return np.asarray((inverse @ (sums @ sums.T) @ inverse.T)[:count, :count], np.float64)


def _block_sums(values: Array) -> NDArray[np.float64]:
    """Sums over square blocks of an image (h, w), what is left at its ends apart."""
    xp = array_namespace(values)
    rows, columns = (xp.arange(0, size, _BLOCK) for size in values.shape)
    sums = xp.add.reduceat(xp.add.reduceat(values.astype(np.float64), rows, axis=0), columns, axis=1)
    found: NDArray[np.float64] = to_host(sums).ravel()
    return found


def slopes_of(image: Array) -> tuple[Array, Array]:
    """Slopes of an image (h, w) along rows and columns."""
    xp = array_namespace(image)
    taps = xp.asarray(np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12)
    along = [ndimage_of(xp).correlate1d(image, taps, axis=axis, mode="mirror") for axis in (0, 1)]
    return along[0], along[1]


def _level(image: Array, model: Model, factor: int) -> Level:
    xp = array_namespace(image)
    along_rows, along_columns = slopes_of(image)
    y, x = (xp.arange(size, dtype=image.dtype) - (size - 1) / 2 for size in image.shape)
    changes = model.slopes(along_rows, along_columns, y[:, None], x[None, :])
    return Level(image, xp.stack(changes).astype(image.dtype), image.shape, factor)


def _inside(level: Level, motion: Matrix) -> Array:
    """Which pixels (h, w) of the reference are compared: away from its edges, and shown away from the frame's."""
    xp = array_namespace(level.image)
    height, width = level.shape
    y = (xp.arange(height) - (height - 1) / 2)[:, None]
    x = (xp.arange(width) - (width - 1) / 2)[None, :]
    places = [motion[axis, 0] * y + motion[axis, 1] * x + motion[axis, 2] for axis in (0, 1)]
    half = [(size - 1) / 2 - _RIM for size in level.shape]
    seen = (abs(places[0]) <= half[0]) & (abs(places[1]) <= half[1])
    return seen & (abs(y) <= half[0]) & (abs(x) <= half[1])


def _correlation(one: Array, other: Array) -> float:
    one, other = one - one.mean(), other - other.mean()
    power = float((one * one).sum()) * float((other * other).sum())
    return float((one * other).sum()) / np.sqrt(power) if power > 0 else float("nan")
