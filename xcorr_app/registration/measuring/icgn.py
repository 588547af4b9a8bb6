"""Sub-pixel shifts over the whole overlap: inverse-compositional Gauss-Newton, from an ordinary estimate.

A fit to 3 x 3 values of a correlation plane knows the shape of the peak only as far as a polynomial goes: on clean,
fine speckle it is off by up to 0.02 pixels. Here the frame is interpolated at the shift, and the shift corrected until
no first-order change would bring the frame nearer to the reference, whatever its gain and offset: the zero-mean
normalised sum of squared differences. The steepest-descent images and the Hessian are those of the reference and stay
the same, so that a step is one interpolation and four sums (Baker and Matthews 2004, doi
10.1023/B:VISI.0000011205.11775.fd; for strain measurement Pan, Li and Tong 2013, doi 10.1007/s11340-013-9717-6).

Cubic splines would leave an error of 0.004 pixels on such speckle, and quintic ones 0.001; interpolation is by a sinc
of 17 taps under a Kaiser window. Slopes are fourth-order central differences, as usual: noise and what lies near the
Nyquist frequency, where no interpolation is right, weigh less in them than in exact ones.

Where frequencies are weighted (:mod:`xcorr_app.correlation.weighting`), the steepest-descent images are smoothed by the
weighting's kernel: the shift found is then the maximum of the weighted plane itself, without a polynomial. In noise
that is no better than the ordinary estimate (on synthetic spots and speckle 0.93 to 1.2 times its error): this is for
clean, finely textured images.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import standardize, working_dtype
from xcorr_app.correlation.weighting import RADIUS, smooth
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host

_REACH = 8
"""Pixels on each side of a place that interpolation looks at."""
_MARGIN = _REACH + 1
"""Rows and columns along the edges of a frame that are looked at only, as a place may be a pixel away."""
_KAISER_BETA = 5.0
_SLOPE = np.array([[1.0, -8.0, 0.0, 8.0, -1.0]]) / 12
_SETTLED = 2e-5
"""Step in pixels after which a shift is settled."""
_MAX_STEPS = 30
_FARTHEST = 0.5
"""Pixels from the ordinary estimate beyond which another peak was found."""
_FEWEST = 64
"""Pixels of an overlap that are worth the effort."""
_MIN_DETERMINANT = 1e-6
"""Of a Hessian, over the square of its trace: below, slopes have one direction only, or there are none."""
_PIXELS_AT_ONCE = {True: 1 << 23, False: 1 << 18}
"""Pixels of the frames that are refined together, on a device and on the host."""


@dataclass(frozen=True)
class Refined:
    """Refined shifts."""

    shift: NDArray[np.float64]
    """(n, 2) rows, columns in pixels; as given where no better was found."""
    settled: NDArray[np.bool_]
    """(n,) whether a better one was found."""


class Template:
    """Reference images (1 or n, h, w) and their steepest-descent images; of a single one for any number of frames.

    Parameters
    ----------
    images : ndarray
        Integers or floats, finite.
    kernel : ndarray or None
        Weighting of frequencies.
    """

    def __init__(self, images: Array, kernel: NDArray[np.float64] | None) -> None:
        images = _standard(images)
        self.shared = images.shape[0] == 1
        self.images = _with_slopes(images) if has_inside(images) else []
        self.weighted = self.images
        if kernel is not None and self.images:
            self.weighted = _with_slopes(_smoothed(images, kernel))

    def taken(self, rows: NDArray[np.intp] | slice) -> tuple[list[Array], list[Array]]:
        """Images and weighted images of some frames."""
        if self.shared:
            return self.images, self.weighted
        return [image[rows] for image in self.images], [image[rows] for image in self.weighted]


def refine_shifts(template: Template, frames: Array, shift: NDArray[np.float64]) -> Refined:
    """Refine shifts (n, 2), to be added to frames (n, h, w) to land on the template; NaN stays as it is."""
    shift = np.asarray(shift, dtype=np.float64)
    found, settled = shift.copy(), np.zeros(shift.shape[0], dtype=bool)
    count, height, width = frames.shape
    at_once = max(1, _PIXELS_AT_ONCE[array_namespace(frames) is not np] // (height * width))
    for start in range(0, count if has_inside(frames) else 0, at_once):
        part = slice(start, start + at_once)
        found[part], settled[part] = _refined(template, part, frames[part], shift[part])
    return Refined(found, settled)


def _refined(
    template: Template, part: slice, frames: Array, shift: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Refined shifts of some frames, and which of them are settled."""
    # The place in the frame that a pixel of the template is compared with is that many pixels away.
    begin = np.where(np.isfinite(shift), -shift, 0.0)
    whole = np.rint(begin).astype(np.intp)
    aligned = _aligned(_standard(frames), whole)
    images, weighted = template.taken(part)
    sides = [_inside(whole[:, axis], size) for axis, size in enumerate(frames.shape[1:])]
    problem = _Problem.of(images, weighted, sides)
    place, settled = begin.copy(), np.zeros(shift.shape[0], dtype=bool)
    active = np.flatnonzero(problem.solvable & np.isfinite(shift).all(axis=1))
    chosen, rows = None, np.empty(0, dtype=np.intp)
    for _ in range(_MAX_STEPS):
        if active.size == 0:
            break
        if active.size != rows.size:
            chosen, rows = _chosen(aligned, weighted, sides, active), active
        assert chosen is not None  # noqa: S101 - set in the first round
        taps = [_taps((place - whole)[active, axis]) for axis in (0, 1)]
        step = problem.step(active, _weighted_sums(*chosen, taps))
        place[active] -= step
        away = np.abs(place - begin)[active].max(axis=1)
        near = away <= _FARTHEST
        done = near & (np.abs(step).max(axis=1) <= _SETTLED)
        settled[active[done]] = True
        active = active[near & ~done]
    return np.where(settled[:, None], -place, shift), settled


@dataclass(frozen=True)
class _Problem:
    """What a step follows from beside the interpolated frame; sums over the overlap of each frame, on the host."""

    projection: NDArray[np.float64]
    """(n, 2, 2) shares of a constant and of the template that the steepest-descent images lose."""
    inverse: NDArray[np.float64]
    """(n, 2, 2) of the Hessian."""
    level: NDArray[np.float64]
    """(n,) mean of the template as weighted."""
    power: NDArray[np.float64]
    """(n,) sum of products of the template as weighted and the template, without means."""
    solvable: NDArray[np.bool_]

    @classmethod
    def of(cls, images: list[Array], weighted: list[Array], sides: list[NDArray[np.bool_]]) -> _Problem:
        """Sums over rows and columns of the overlaps (n, h) and (n, w)."""
        y, x = (_on_device(side, images[0]) for side in sides)
        pixels = sides[0].sum(axis=1) * sides[1].sum(axis=1)
        count = np.maximum(pixels, 1).astype(np.float64)
        factors = [*images, *weighted, *(one * other for one in weighted for other in images)]
        sums = to_host(array_namespace(y).stack([_sum(factor, y, x) for factor in factors], axis=1))
        plain, means, products = sums[:, :3], sums[:, 3:6], sums[:, 6:].reshape(-1, 3, 3)
        # Without means: constants take no part.
        products = products - means[:, :, None] * plain[:, None, :] / count[:, None, None]
        power = products[:, 0, 0]
        safe = np.where(power > 0, power, 1.0)
        of_template = products[:, 1:, 0] / safe[:, None]
        hessian = products[:, 1:, 1:] - of_template[:, :, None] * products[:, :1, 1:]
        a, b, c, d = hessian.reshape(-1, 4).T
        determinant = a * d - b * c
        solvable = (pixels >= _FEWEST) & (power > 0) & (a > 0) & (determinant > _MIN_DETERMINANT * (a + d) ** 2)
        inverse = np.linalg.inv(np.where(solvable[:, None, None], hessian, np.eye(2)))
        of_constant = means[:, 1:] / count[:, None] - of_template * (means[:, :1] / count[:, None])
        projection = np.stack([of_constant, of_template], axis=2)
        return cls(projection, inverse, means[:, 0] / count, power, solvable)

    def step(self, rows: NDArray[np.intp], sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Steps (k, 2) of some frames from the sums (k, 4) of their pixels: plain, times each of the weighted."""
        constant, template, slopes = sums[:, 0], sums[:, 1], sums[:, 2:]
        gain = (template - self.level[rows] * constant) / self.power[rows]
        lost = self.projection[rows, :, 0] * constant[:, None] + self.projection[rows, :, 1] * template[:, None]
        # Against a frame that resembles the template turned inside out there is nothing to gain.
        per_gain = (slopes - lost) / np.where(gain > 0, gain, np.nan)[:, None]
        step: NDArray[np.float64] = (self.inverse[rows] @ per_gain[:, :, None])[:, :, 0]
        return np.where(np.isfinite(step), step, np.inf)


def interpolated(frames: Array, place: NDArray[np.float64]) -> tuple[Array, Array]:
    """Frames (n, h, w) seen `place` (n, 2) away from each pixel of a template; and which of these lie well inside them.

    Either is (n, h - 16, w - 16), as a template's images are.
    """
    whole = np.rint(place).astype(np.intp)
    values = _along(_along(_aligned(frames, whole), _taps((place - whole)[:, 0]), 1), _taps((place - whole)[:, 1]), 2)
    y, x = (_on_device(_inside(whole[:, axis], size), frames) for axis, size in enumerate(frames.shape[1:]))
    return values, y[:, :, None] * x[:, None, :]


def _weighted_sums(
    frames: Array, weighted: list[Array], y: Array, x: Array, taps: list[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Sums (k, 4) over the overlap of frames at their places: plain, times each of the weighted images."""
    values = _along(_along(frames, taps[0], 1), taps[1], 2)
    sums = [_sum(values, y, x), *(_sum(values * image, y, x) for image in weighted)]
    found: NDArray[np.float64] = to_host(array_namespace(values).stack(sums, axis=1))
    return found


def _chosen(
    frames: Array, weighted: list[Array], sides: list[NDArray[np.bool_]], rows: NDArray[np.intp]
) -> tuple[Array, list[Array], Array, Array]:
    """What of some frames is interpolated, multiplied and summed; nothing is copied where it is all of them."""
    y, x = (_on_device(side[rows], frames) for side in sides)
    if rows.size == frames.shape[0]:
        return frames, weighted, y, x
    at = array_namespace(frames).asarray(rows)
    shared = weighted[0].shape[0] == 1
    return frames[at], weighted if shared else [image[at] for image in weighted], y, x


def _taps(offset: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights (n, 17) of the pixels at -8 ... 8 for places (n,) within a pixel of 0."""
    distance = np.clip(offset, -1.0, 1.0)[:, None] - np.arange(-_REACH, _REACH + 1)
    inside = np.clip(1 - (distance / _REACH) ** 2, 0.0, None)
    weights = np.sinc(distance) * np.where(inside > 0, np.i0(_KAISER_BETA * np.sqrt(inside)), 0.0)
    taps: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return taps


def _along(images: Array, taps: NDArray[np.float64], axis: int) -> Array:
    """Sums of neighbours along an axis of images (n, h, w), weighted by the taps (1 or n, m) of each."""
    xp = array_namespace(images)
    weights = xp.asarray(taps.astype(images.dtype))
    size = images.shape[axis] - taps.shape[1] + 1
    cut = [slice(None)] * 3
    cut[axis] = slice(0, size)
    total = images[tuple(cut)] * weights[:, 0, None, None]
    term = xp.empty_like(total)
    for tap in range(1, taps.shape[1]):
        cut[axis] = slice(tap, tap + size)
        xp.multiply(images[tuple(cut)], weights[:, tap, None, None], out=term)
        total += term
    return total


def has_inside(images: Array) -> bool:
    """Whether anything of images is `_REACH` pixels away from every side."""
    return bool(min(images.shape[1:]) > 2 * _REACH)


def _with_slopes(images: Array) -> list[Array]:
    """Images and their slopes along rows and columns, less `_REACH` pixels on every side."""
    near, around = slice(_REACH, -_REACH), slice(_REACH - 2, 2 - _REACH)
    along_rows, along_columns = _along(images[:, around, near], _SLOPE, 1), _along(images[:, near, around], _SLOPE, 2)
    return [images[:, near, near], along_rows, along_columns]


def _smoothed(images: Array, kernel: NDArray[np.float64]) -> Array:
    xp = array_namespace(images)
    padded = xp.pad(images, ((0, 0), (RADIUS, RADIUS), (RADIUS, RADIUS)))
    return smooth(padded, kernel.astype(images.dtype)).astype(images.dtype)


def _standard(images: Array) -> Array:
    """Images without their means, as floats; those that are floats have lost theirs before."""
    return images if images.dtype.kind == "f" else standardize(images, working_dtype(images)).values


def _aligned(images: Array, whole: NDArray[np.intp]) -> Array:
    """Images (n, h, w) moved so that element (y, x) is the one at (y, x) + `whole`; edges continued."""
    xp = array_namespace(images)
    rows, columns = (
        np.clip(np.arange(size) + whole[:, axis, None], 0, size - 1) for axis, size in enumerate(images.shape[1:])
    )
    if xp is np:
        return np.stack([image[row][:, column] for image, row, column in zip(images, rows, columns, strict=True)])
    batch = xp.arange(images.shape[0])[:, None, None]
    return images[batch, xp.asarray(rows)[:, :, None], xp.asarray(columns)[:, None, :]]


def _inside(whole: NDArray[np.intp], size: int) -> NDArray[np.bool_]:
    """Which lines (n, size - 16) of the template are compared with lines well inside the frame, whole places away."""
    there = np.arange(_REACH, size - _REACH) + whole[:, None]
    inside: NDArray[np.bool_] = (there >= _MARGIN) & (there < size - _MARGIN)
    return inside


def _on_device(side: NDArray[np.bool_], like: Array) -> Array:
    return array_namespace(like).asarray(side.astype(like.dtype))


def _sum(images: Array, y: Array, x: Array) -> Array:
    """Sums (n,) of images (1 or n, h, w) over the rows and columns of weight one."""
    by_row = (images @ x[:, :, None])[:, :, 0].astype(np.float64)
    return (by_row * y).sum(axis=1)
