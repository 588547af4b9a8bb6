"""Standard error of each shift, from what frame and reference do not share, tile by tile.

At the shift found, the slope of the (weighted) correlation is zero; what it would be through noise and change alone,
over the curvature of the peak, is the error of the shift. That slope is the sum over the image of

    t(x) = G(x) r(x),    r(x) = f(x - shift) - a - b g(x),

with G the slope of the reference g, smoothed as the plane was, and r what the registered frame f and the reference do
not share. Summed over tiles larger than the correlation of noise and scene, the t are independent, and the scatter
among tiles is the variance of the sum, whatever the noise is: white or not, of the reference or of the frame, stronger
on bright parts, or a change of the scene (the sandwich estimator of Huber 1967 and White 1980,
doi 10.2307/1912934, with tiles as clusters). Divided by the Hessian of the peak it is the covariance of the shift. For
white noise this is the matched filter's error propagation, and with the weighting of
:mod:`xcorr_app.correlation.weighting` the Cramer-Rao bound.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.correlation.subpixel import quadratic_terms
from xcorr_app.correlation.weighting import RADIUS, smooth
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host

_Edges: TypeAlias = tuple[NDArray[np.intp], NDArray[np.intp]]

_TILES = 12
"""Tiles along each axis, where they are not smaller than `_SMALLEST` pixels."""
_SMALLEST = 16
_FEWEST = 6
"""Tiles below which their scatter says nothing."""
_BIAS = 0.001
"""Error in pixels of interpolation between whole shifts, which no residual shows."""


class ReferenceSlopes:
    """Reference images (1 or n, h, w) and their slopes, made once for any number of frames."""

    def __init__(self, values: Array, kernel: NDArray[np.float64] | None) -> None:
        xp = array_namespace(values)
        values = values.astype(working_dtype(values), copy=False)
        g = values - values.mean(axis=(1, 2), keepdims=True)
        smoothed = g
        if kernel is not None:
            margin = ((0, 0), (RADIUS, RADIUS), (RADIUS, RADIUS))
            smoothed = smooth(xp.pad(g, margin), kernel.astype(g.dtype)).astype(g.dtype)
        gy, gx = _slope(g, 1), _slope(g, 2)
        # The slope of the polynomial through 3 x 3 values, which the sub-pixel fit is.
        wy, wx = _slope(_mean_of_3(smoothed, 2), 1), _slope(_mean_of_3(smoothed, 1), 2)
        self.factors = smoothed, wy, wx
        self._terms: tuple[tuple[Array, ...], ...] = ((g,), (g, g), (smoothed,), (smoothed, g), (wy,), (wx,))
        self._terms += ((wy, g), (wx, g), (wy, gy), (wy, gx), (wx, gy), (wx, gx))
        self._tables = (
            [_table(*(factor[0] for factor in term)) for term in self._terms] if values.shape[0] == 1 else None
        )

    def tile_sums(self, edges: _Edges) -> list[Array]:
        """Sums over the tiles (n, k) of each term that frames have no part in."""
        if self._tables is None:
            return [_tile_sums(edges, *term) for term in self._terms]
        # Of one image for many frames any sum is four values of a summed-area table.
        xp = array_namespace(self._tables[0])
        y, x = (xp.asarray(e) for e in edges)
        corners = (table[y[:, :, None], x[:, None, :]] for table in self._tables)
        return [xp.diff(xp.diff(c, axis=1), axis=2).reshape(len(y), -1) for c in corners]


def standard_errors(
    reference: ReferenceSlopes,
    frames: Array,
    peak: NDArray[np.intp],
    shift: NDArray[np.float64],
    near: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Standard errors (n, 2) in pixels of the shifts (n, 2) of frames (n, h, w).

    `near` (n, 3, 3) are the values of the plane around `peak`; where they are no peak the error is infinite. NaN where
    it cannot be known: on an edge without neighbours, and in images of too few tiles.
    """
    xp = array_namespace(frames)
    edges = _edges(peak[:, 0], frames.shape[1]), _edges(peak[:, 1], frames.shape[2])
    moved = _moved(frames, peak)
    smoothed, wy, wx = reference.factors
    of_frames = [moved.sum(axis=(1, 2), dtype=np.float64), _products(moved, moved), _products(smoothed, moved)]
    slopes = [_tile_sums(edges, slope, moved) for slope in (wy, wx)]
    offset = xp.asarray(np.nan_to_num(shift - peak))
    pixels = xp.asarray(np.prod([e[:, -1] - e[:, 0] for e in edges], axis=0).astype(float))
    parts = slopes[0].shape[1]
    scatter = to_host(_scatter(pixels, offset, of_frames, slopes, reference.tile_sums(edges)))
    sigma = _propagated(scatter, near)
    return sigma if parts >= _FEWEST else np.full_like(sigma, np.nan)


def _scatter(
    pixels: Array, offset: Array, of_frames: list[Array], slopes: list[Array], of_reference: list[Array]
) -> Array:
    """Covariance (n, 2, 2) of the slope of the normalised correlation at its peak, from sums over tiles (n, k)."""
    xp = array_namespace(pixels)
    plain, squared, shared = of_frames
    g, gg, smoothed, smoothed_g = (part.sum(axis=1) for part in of_reference[:4])
    wy, wx, wy_g, wx_g, *bends = of_reference[4:]
    count = xp.maximum(pixels, 1.0)
    mean, level = plain / count, g / count
    power, own = squared / count - mean**2, gg / count - level**2
    # Of smoothed images, which have little noise of their own.
    clean = smoothed_g - level * smoothed
    gain = xp.where(clean > 0, (shared - mean * smoothed) / xp.where(clean > 0, clean, 1.0), 0.0)

    def column(values: Array) -> Array:
        return values[:, None]

    level, mean, gain = column(level), column(mean), column(gain)
    rest = [
        t - mean * w - gain * (w_g - level * w + column(offset[:, 0]) * w_y + column(offset[:, 1]) * w_x)
        for t, w, w_g, w_y, w_x in zip(slopes, (wy, wx), (wy_g, wx_g), bends[::2], bends[1::2], strict=True)
    ]
    # The slopes leave out what bends between whole shifts: a further offset takes the sum of all tiles to zero.
    a, b, c, d = (part.sum(axis=1) for part in bends)
    p, q = (part.sum(axis=1) for part in rest)
    determinant = a * d - b * c
    safe = xp.where(determinant > 0, determinant, np.inf)
    further = column((p * d - q * b) / safe), column((q * a - p * c) / safe)
    rest = [t - further[0] * w_y - further[1] * w_x for t, w_y, w_x in zip(rest, bends[::2], bends[1::2], strict=True)]
    norm = power * own * count**2
    tiles = xp.stack(rest, axis=1)
    usable = (norm > 0)[:, None, None]
    return xp.where(usable, tiles @ tiles.transpose(0, 2, 1) / xp.where(usable, norm[:, None, None], 1.0), np.inf)


def _propagated(scatter: NDArray[np.float64], near: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard errors from the variance of the slope at a peak and the nine values there."""
    d, e, f = quadratic_terms(near)[:, 3:].T
    is_peak = (4 * d * f - e * e > 0) & (d < 0) & np.isfinite(scatter).all(axis=(1, 2))
    hessian = np.stack([2 * d, e, e, 2 * f], axis=1).reshape(-1, 2, 2)
    inverse = np.linalg.inv(np.where(is_peak[:, None, None], hessian, np.eye(2)))
    with np.errstate(invalid="ignore"):
        variance = np.diagonal(inverse @ scatter @ inverse, axis1=1, axis2=2)
    unknown = np.isnan(near).any(axis=(1, 2))
    return np.where(is_peak[:, None], np.sqrt(variance + _BIAS**2), np.where(unknown, np.nan, np.inf)[:, None])


def _edges(shifts: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    """Where the tiles of the overlap begin and end along an axis, (n, tiles + 1)."""
    first, last = np.maximum(shifts, 0)[:, None], size + np.minimum(shifts, 0)[:, None]
    count = max(1, min(_TILES, size // _SMALLEST))
    edges: NDArray[np.intp] = first + (last - first) * np.arange(count + 1) // count
    return edges


def _products(images: Array, moved: Array) -> Array:
    """Sums (n,) of the products of images (1 or n, h, w), in float64."""
    xp = array_namespace(moved)
    if xp is np:
        return np.array([np.vdot(images[i if len(images) > 1 else 0], m) for i, m in enumerate(moved)], dtype=float)
    return (images * moved).sum(axis=(1, 2), dtype=np.float64)


def _tile_sums(edges: _Edges, *factors: Array) -> Array:
    """Sums over tiles (n, k) of the product of images (1 or n, h, w)."""
    xp = array_namespace(factors[0])
    count = len(edges[0])
    if xp is not np:
        product = factors[0] if len(factors) == 1 else factors[0] * factors[1]
        rows, columns = (_members(e, size, product) for e, size in zip(edges, product.shape[1:], strict=True))
        return (rows @ product @ columns.transpose(0, 2, 1)).astype(np.float64).reshape(count, -1)
    # One image after the other stays in the cache.
    sums = np.empty((count, (edges[0].shape[1] - 1) * (edges[1].shape[1] - 1)))
    for i, (y, x) in enumerate(zip(*edges, strict=True)):
        if min(np.diff(y).min(), np.diff(x).min()) < 1:
            sums[i] = np.nan
            continue
        parts = [image[i if len(image) > 1 else 0, y[0] : y[-1], x[0] : x[-1]] for image in factors]
        product = parts[0] if len(parts) == 1 else parts[0] * parts[1]
        tiles = np.add.reduceat(np.add.reduceat(product, y[:-1] - y[0], axis=0), x[:-1] - x[0], axis=1)
        sums[i] = tiles.ravel()
    return sums


def _members(edges: NDArray[np.intp], size: int, like: Array) -> Array:
    """Which tile each row or column belongs to: (n, tiles, size) of zeros and ones."""
    xp = array_namespace(like)
    place, bounds = xp.arange(size), xp.asarray(edges)[:, :, None]
    return ((place >= bounds[:, :-1]) & (place < bounds[:, 1:])).astype(like.dtype)


def _table(image: Array, other: Array | None = None) -> Array:
    """Summed-area table of an image or the product of two, (h + 1, w + 1) in float64."""
    xp = array_namespace(image)
    image = image if other is None else image * other
    table = xp.zeros((image.shape[0] + 1, image.shape[1] + 1))
    table[1:, 1:] = xp.cumsum(xp.cumsum(image, axis=0, dtype=np.float64), axis=1)
    return table


def _moved(frames: Array, peak: NDArray[np.intp]) -> Array:
    """Frames without their mean at whole shifts; zero beyond the overlap."""
    xp = array_namespace(frames)
    count, height, width = frames.shape
    means = frames.mean(axis=(1, 2), dtype=np.float64)
    dtype = working_dtype(frames)
    if xp is np:
        moved = np.zeros(frames.shape, dtype)
        for i in range(count):
            (to_y, from_y), (to_x, from_x) = (
                _overlap(int(k), n) for k, n in zip(peak[i], (height, width), strict=True)
            )
            np.subtract(frames[i, from_y, from_x], means[i].astype(dtype), out=moved[i, to_y, to_x], casting="unsafe")
        return moved
    rows = (xp.arange(height) - xp.asarray(peak[:, :1]))[:, :, None]
    columns = (xp.arange(width) - xp.asarray(peak[:, 1:]))[:, None, :]
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    batch = xp.arange(count)[:, None, None]
    moved = frames[batch, xp.clip(rows, 0, height - 1), xp.clip(columns, 0, width - 1)].astype(dtype)
    return (moved - means.astype(dtype)[:, None, None]) * inside


def _overlap(shift: int, size: int) -> tuple[slice, slice]:
    """Where a line of pixels lies after it was shifted, and which of its pixels those are."""
    return slice(max(shift, 0), size + min(shift, 0)), slice(max(-shift, 0), size - max(shift, 0))


def _slope(images: Array, axis: int) -> Array:
    """Central differences along an axis, zero on the rim."""
    before, after, inner = _neighbours(axis)
    slope = array_namespace(images).zeros_like(images)
    slope[inner] = (images[after] - images[before]) / 2
    return slope


def _mean_of_3(images: Array, axis: int) -> Array:
    before, after, inner = _neighbours(axis)
    mean = images.copy()
    mean[inner] = (images[before] + images[inner] + images[after]) / 3
    return mean


def _neighbours(axis: int) -> tuple[tuple[slice, ...], ...]:
    """Of all elements along an axis but the first and last: those before, those after, and themselves."""
    return tuple((slice(None),) * axis + (part,) for part in (slice(None, -2), slice(2, None), slice(1, -1)))
