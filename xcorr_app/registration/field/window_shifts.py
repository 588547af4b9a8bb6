"""Windows refined by Gauss-Newton with a shift alone: the sub-pixel step of a single pass.

The same least squares as :mod:`xcorr_app.registration.field.window_icgn` with two numbers a window in place of six. A
parabola or Gaussian through three values of a plane of whole shifts draws fine textures to whole pixels; this asks the
pixels themselves. As a window moves as one, the quintic spline of the second image is sampled along rows and columns
apart: two small products of matrices a window and step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.field.window_icgn import RefinedWindows
from xcorr_app.registration.field.window_match import windows_of
from xcorr_app.registration.motion.gauss_newton import slopes_of
from xcorr_app.registration.warping.ndimage import ndimage_of

Floats = NDArray[np.float64]

_MAX_STEPS = 12
_SETTLED = 2e-3
"""Pixels that a window moves in a step after which it is settled: some tenth of what noise leaves at best."""
_FARTHEST = 1.0
"""Pixels from the start beyond which another place was found."""
_AT_ONCE = 1 << 20
"""Pixels of the windows that are refined together."""
_MIN_SEEN = 0.4
"""Share of a window that must be seen in both images."""
_FLATTEST = 1e-6
"""Smaller eigenvalue of a Hessian over the larger, below which a window shows a shift along one axis only."""
_TAPS = 6
_REACH = 2
"""Coefficients of a quintic spline that a value depends on, and how many of them lie before its pixel."""


def refine_shifts(
    first: Array,
    second: Array,
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
    size: int,
    shift: Floats,
    counts: Array | None = None,
) -> RefinedWindows:
    """Refine the displacement (n, 2) of windows that begin at (n,) rows and columns of the first image.

    Pixels of the first image that do not count (Y, X), or that lie beyond the second at the start, take no part.
    """
    xp = array_namespace(first)
    splines = ndimage_of(xp).spline_filter(second, order=5, output=np.float32, mode="mirror")
    splines = xp.pad(splines, _TAPS, mode="reflect")
    images = [*slopes_of(first), first]
    at_once, parts = max(1, _AT_ONCE // size**2), []
    for start in range(0, len(rows), at_once):
        part = slice(start, start + at_once)
        place = np.stack([rows[part], columns[part]], axis=1)
        parts.append(_refined(images, splines, place, size, shift[part], counts))
    return RefinedWindows(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _refined(
    images: list[Array], splines: Array, place: NDArray[np.intp], size: int, start: Floats, counts: Array | None
) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    xp = array_namespace(splines)
    known: NDArray[np.bool_] = np.asarray(np.isfinite(start).all(axis=1))
    shift = np.where(known[:, None], start, 0.0)
    weight = _weight(place, size, shift, images[0].shape, counts, xp)
    pixels = weight.sum(axis=1)
    values = xp.stack(
        [windows_of(each, place[:, 0], place[:, 1], (size, size)).reshape(len(place), -1) for each in images], axis=1
    )
    means = (values @ weight[:, :, None]) / xp.maximum(pixels, 1)[:, None, None]
    values = (values - means) * weight[:, None]
    products = to_host(values @ values.transpose(0, 2, 1)).astype(np.float64)
    hessian, own, power = products[:, :2, :2], products[:, :2, 2], products[:, 2, 2]
    count = to_host(pixels).astype(np.float64)
    eigenvalues = np.linalg.eigvalsh(hessian)
    usable = known & (eigenvalues[:, 0] > _FLATTEST * eigenvalues[:, 1]) & (count >= _MIN_SEEN * size**2) & (power > 0)
    inverse = np.linalg.inv(np.where(usable[:, None, None], hessian, np.eye(2)))
    left = xp.concatenate([values, weight[:, None]], axis=1)
    score, settled = np.full(len(place), np.nan), np.zeros(len(place), dtype=bool)
    active = np.flatnonzero(usable)
    for _ in range(_MAX_STEPS):
        if not active.size:
            break
        at = slice(None) if active.size == len(place) else xp.asarray(active)
        seen = _seen(splines, place[active], size, shift[active], xp)
        sums = to_host((left[at] @ seen[:, :, None])[:, :, 0]).astype(np.float64)
        squares = to_host((weight[at] * seen * seen).sum(axis=1)).astype(np.float64)
        spread = np.maximum(squares - sums[:, 3] ** 2 / np.maximum(count[active], 1), 1e-300)
        gain = np.sqrt(power[active] / spread)
        right = gain[:, None] * sums[:, :2] - own[active]
        change = (inverse[active] @ right[:, :, None])[:, :, 0]
        score[active] = sums[:, 2] / np.sqrt(power[active] * spread)
        shift[active] -= change
        done = np.abs(change).max(axis=1) < _SETTLED
        near = np.abs(shift[active] - start[active]).max(axis=1) < _FARTHEST
        settled[active] = done & near
        active = active[~done & near]
    # Both images' noise is in what is left; the numbers are two of the shift, a gain and an offset.
    variance = 2 * power * np.clip(1 - score, 0.0, None) / np.maximum(count - 4, 1)
    with np.errstate(invalid="ignore"):
        sigma = np.sqrt(np.einsum("nii->ni", inverse) * variance[:, None])
    return np.where(settled[:, None], shift, start), np.where(usable[:, None], sigma, np.nan), score, settled


def _weight(
    place: NDArray[np.intp],
    size: int,
    shift: Floats,
    shape: tuple[int, ...],
    counts: Array | None,
    xp: Any,
) -> Array:
    """Weights (n, pixels) of 0 and 1: what counts in the first image and lies, from the start, in the second."""
    inside = []
    for axis in (0, 1):
        first = place[:, axis, None] + np.arange(size)
        there = first + shift[:, axis, None]
        inside.append((first >= 0) & (first < shape[axis]) & (there >= 0) & (there <= shape[axis] - 1))
    weight = xp.asarray((inside[0][:, :, None] & inside[1][:, None, :]).astype(np.float32))
    if counts is not None:
        weight = weight * windows_of(counts, place[:, 0], place[:, 1], (size, size))
    return weight.reshape(len(place), -1)


def _seen(splines: Array, place: NDArray[np.intp], size: int, shift: Floats, xp: Any) -> Array:
    """Values (n, pixels) of the second image where windows are displaced to."""
    whole = np.floor(shift).astype(np.intp)
    begin = place + whole - _REACH + _TAPS  # the coefficients are padded
    part = windows_of(splines, begin[:, 0], begin[:, 1], (size + _TAPS - 1,) * 2)
    along = [xp.asarray(_sampling(fraction, size)) for fraction in (shift - whole).T]
    found = (along[0] @ part) @ along[1].transpose(0, 2, 1)
    return found.reshape(len(place), -1)


def _sampling(fraction: Floats, size: int) -> NDArray[np.float32]:
    """Matrices (n, size, size + 5) from coefficients of quintic splines to values so far (n,) behind their pixels."""
    distance = np.abs(fraction[:, None] + _REACH - np.arange(_TAPS))
    # The B-spline of degree five as a sum of truncated powers.
    taps = sum(
        factor * np.maximum(3 - k - distance, 0.0) ** 5 for k, factor in enumerate((1.0, -6.0, 15.0))
    ) / np.float64(120)
    found = np.zeros((len(fraction), size, size + _TAPS - 1), np.float32)
    at = np.arange(size)
    for k in range(_TAPS):
        found[:, at, at + k] = taps[:, k, None]
    return found
