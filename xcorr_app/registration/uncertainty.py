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
:mod:`xcorr_app.correlation.weighting` the Cramer-Rao bound. Of large frames a part of the rows of tiles will do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.correlation.subpixel import quadratic_terms
from xcorr_app.correlation.weighting import RADIUS, smooth
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host

_TILES = 12
"""Tiles along each axis, where they are not smaller than `_SMALLEST` pixels."""
_SMALLEST = 16
_FEWEST = 6
"""Tiles below which their scatter says nothing."""
_CHOSEN = ((384, slice(2, None, 4)), (224, slice(None, None, 2)), (0, slice(None)))
"""Which rows of tiles are looked at in frames of at least so many rows."""
_ROWS = 128
"""Rows spread over the overlap that variances are taken from."""
_MARGIN = RADIUS + 2
"""Rows around a strip of tiles that its slopes depend on."""
_BIAS = 0.001
"""Error in pixels of interpolation between whole shifts, which no residual shows."""
_STEADY = 20.0
"""Significance from which a peak's own curvature is steady enough."""
_FEWEST_PEAKS = 4
"""Peaks of a stack whose median curvature is better than the curvature of one that is noisy."""


class ReferenceSlopes:
    """Reference images (1 or n, h, w) and their slopes; of a single one made once for any number of frames."""

    def __init__(self, values: Array, kernel: NDArray[np.float64] | None) -> None:
        xp = array_namespace(values)
        values = values.astype(working_dtype(values), copy=False)
        self.images = values - values.mean(axis=(1, 2), keepdims=True)
        self._kernel = kernel
        self._shared = values.shape[0] == 1
        self._padded = xp.pad(self.images, ((0, 0), (_MARGIN, _MARGIN), (0, 0)))
        if self._shared:
            self._factors = [xp.ascontiguousarray(factor) for factor in self._slopes(self._padded)]

    def rows(self, rows: NDArray[np.intp]) -> Array:
        """Rows (n, k, m) of the images, (n, k, m, w)."""
        xp = array_namespace(self.images)
        each = 0 if self._shared else xp.arange(rows.shape[0])[:, None, None]
        return self.images[each, xp.asarray(rows)]

    def strips(self, rows: NDArray[np.intp]) -> list[Array]:
        """Rows (n, k, m) of the images, of what they are smoothed, and of the slopes of both: (n, k, m, w) each."""
        xp = array_namespace(self.images)
        if self._shared:
            return [xp.take(factor[0], xp.asarray(rows), axis=0) for factor in self._factors]
        count, strips, _ = rows.shape
        around = rows[:, :, :1] + np.arange(rows.shape[2] + 2 * _MARGIN)
        cut = self._padded[xp.arange(count)[:, None, None], xp.asarray(around)]
        factors = self._slopes(cut.reshape(count * strips, -1, cut.shape[-1]))
        return [factor.reshape(*rows.shape, -1) for factor in factors]

    def _slopes(self, images: Array) -> list[Array]:
        """Images, smoothed as the plane was; the slopes of the smoothed; those of the images. `_MARGIN` rows go."""
        xp = array_namespace(images)
        near = slice(RADIUS, -RADIUS)
        smoothed = images[:, near]
        if self._kernel is not None:
            sides = xp.pad(images, ((0, 0), (0, 0), (RADIUS, RADIUS)))
            smoothed = smooth(sides, self._kernel.astype(images.dtype)).astype(images.dtype)
        images = images[:, near]
        # The slope of the polynomial through 3 x 3 values, which the sub-pixel fit is.
        wy, wx = _slope(_mean_of_3(smoothed, 2), 1), _slope(_mean_of_3(smoothed, 1), 2)
        factors = images, smoothed, wy, wx, _slope(images, 1), _slope(images, 2)
        rim = slice(_MARGIN - RADIUS, RADIUS - _MARGIN)
        return [factor[:, rim] for factor in factors]


def _pairs(g: Array, smoothed: Array, wy: Array, wx: Array, gy: Array, gx: Array) -> tuple[tuple[Array, ...], ...]:
    """Factors of the products that frames have no part in."""
    return (g,), (smoothed,), (smoothed, g), (wy,), (wx,), (wy, g), (wx, g), (wy, gy), (wy, gx), (wx, gy), (wx, gx)


@dataclass
class PeakShapes:
    """What standard errors follow from, one entry a frame; NaN where not known."""

    scatter: NDArray[np.float64]
    """(T, 2, 2) covariance of the slope of the correlation at its peak."""
    hessian: NDArray[np.float64]
    """(T, 2, 2) of the peak."""
    height: NDArray[np.float64]
    """(T,) of the peak, in the units of the Hessian."""

    @classmethod
    def empty(cls, count: int) -> PeakShapes:
        """Nothing known yet."""
        return cls(np.full((count, 2, 2), np.nan), np.full((count, 2, 2), np.nan), np.full(count, np.nan))

    def standard_errors(self, significance: NDArray[np.float64]) -> NDArray[np.float64]:
        """(T, 2) in pixels; infinite where a peak is none.

        Frames of one stack have peaks of one shape. Where peaks hardly stand out (`significance` (T,)), their own
        curvatures are mostly noise, and the median of the stack takes their place.
        """
        hessian = self.hessian
        positive = self.height > 0
        shape = hessian / np.where(positive, self.height, np.nan)[:, None, None]
        good = positive & _is_peak(hessian)
        if good.sum() >= _FEWEST_PEAKS:
            typical = np.median(shape[good], axis=0)
            with np.errstate(invalid="ignore"):
                noisy = positive & (significance < _STEADY) & np.isfinite(hessian).all(axis=(1, 2))
            noisy &= bool(_is_peak(typical[None])[0])
            hessian = np.where(noisy[:, None, None], typical * self.height[:, None, None], hessian)
        is_peak = _is_peak(hessian) & ~np.isinf(self.scatter).any(axis=(1, 2))
        inverse = np.linalg.inv(np.where(is_peak[:, None, None], hessian, np.eye(2)))
        with np.errstate(invalid="ignore"):
            variance = np.diagonal(inverse @ self.scatter @ inverse, axis1=1, axis2=2)
        unknown = np.isnan(hessian).any(axis=(1, 2)) | np.isnan(self.scatter).any(axis=(1, 2))
        no_peak = np.where(unknown, np.nan, np.inf)[:, None]
        return np.where(is_peak[:, None], np.sqrt(variance + _BIAS**2), no_peak)


def _is_peak(hessian: NDArray[np.float64]) -> NDArray[np.bool_]:
    a, b, c = hessian[:, 0, 0], hessian[:, 0, 1], hessian[:, 1, 1]
    with np.errstate(invalid="ignore"):
        found: NDArray[np.bool_] = (a < 0) & (a * c - b * b > 0)
    return found


def peak_shapes(
    reference: ReferenceSlopes,
    frames: Array,
    peak: NDArray[np.intp],
    shift: NDArray[np.float64],
    near: NDArray[np.float64],
) -> PeakShapes:
    """Shapes of the peaks of frames (n, h, w) with integer and refined shifts (n, 2), from the plane's 3 x 3 values."""
    xp = array_namespace(frames)
    shape = frames.shape[1:]
    y, x = (_edges(peak[:, axis], size) for axis, size in enumerate(shape))
    chosen = next(part for rows, part in _CHOSEN if shape[0] >= rows)
    begins = y[:, :-1][:, chosen]
    rows = begins[:, :, None] + np.arange(max(1, int(np.diff(y).min())))
    rows = np.minimum(rows, shape[0] - 1)
    factors = reference.strips(rows)
    moved = _moved(frames, rows, peak)
    of_reference = [_sum_of_rows(*pair) for pair in _pairs(*factors)]
    of_frames = [_sum_of_rows(moved), *(_sum_of_rows(factor, moved) for factor in factors[1:4])]
    columns = xp.asarray(x)
    tiles = [_sums_across(sums, columns) for sums in (*of_frames, *of_reference)]
    offset = xp.asarray(np.nan_to_num(shift - peak))
    sampled = xp.asarray((x[:, -1] - x[:, 0]) * (rows.shape[1] * rows.shape[2])).astype(np.float64)
    spread = _spread(y)
    sides = xp.asarray(x[:, [0, -1]])
    variances = [_variance(part, sides) for part in (reference.rows(spread), _moved(frames, spread, peak))]
    norm = variances[0] * variances[1] * xp.asarray((y[:, -1] - y[:, 0]) * (x[:, -1] - x[:, 0])) * sampled
    scatter = to_host(_scatter(sampled, offset, tiles, norm))
    if tiles[0].shape[1] < _FEWEST:
        scatter[:] = np.nan
    d, e, f = quadratic_terms(near)[:, 3:].T
    hessian = np.stack([2 * d, e, e, 2 * f], axis=1).reshape(-1, 2, 2)
    return PeakShapes(scatter, hessian, near[:, 1, 1].astype(np.float64))


def _scatter(count: Array, offset: Array, tiles: list[Array], norm: Array) -> Array:
    """Covariance (n, 2, 2) of the slope of the normalised correlation at its peak, from sums over tiles (n, k)."""
    xp = array_namespace(count)
    f, smoothed_f, wy_f, wx_f, g, smoothed, smoothed_g, wy, wx, wy_g, wx_g, *bends = tiles
    count = xp.maximum(count, 1.0)
    mean, level, total = f.sum(axis=1) / count, g.sum(axis=1) / count, smoothed.sum(axis=1)
    # Of smoothed images, which have little noise of their own.
    clean = smoothed_g.sum(axis=1) - level * total
    gain = xp.where(clean > 0, (smoothed_f.sum(axis=1) - mean * total) / xp.where(clean > 0, clean, 1.0), 0.0)

    def column(values: Array) -> Array:
        return values[:, None]

    level, mean, gain = column(level), column(mean), column(gain)
    rest = [
        t - mean * w - gain * (w_g - level * w + column(offset[:, 0]) * w_y + column(offset[:, 1]) * w_x)
        for t, w, w_g, w_y, w_x in zip((wy_f, wx_f), (wy, wx), (wy_g, wx_g), bends[::2], bends[1::2], strict=True)
    ]
    # The slopes leave out what bends between whole shifts: a further offset takes the sum of all tiles to zero.
    a, b, c, d = (part.sum(axis=1) for part in bends)
    p, q = (part.sum(axis=1) for part in rest)
    determinant = a * d - b * c
    safe = xp.where(determinant > 0, determinant, np.inf)
    further = column((p * d - q * b) / safe), column((q * a - p * c) / safe)
    rest = [t - further[0] * w_y - further[1] * w_x for t, w_y, w_x in zip(rest, bends[::2], bends[1::2], strict=True)]
    slopes, usable = xp.stack(rest, axis=1), (norm > 0)[:, None, None]
    covariance = slopes @ slopes.transpose(0, 2, 1)
    return xp.where(usable, covariance / xp.where(usable, norm[:, None, None], 1.0), np.inf)


def _edges(shifts: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    """Where the tiles of the overlap begin and end along an axis, (n, tiles + 1)."""
    first, last = np.maximum(shifts, 0)[:, None], size + np.minimum(shifts, 0)[:, None]
    count = max(1, min(_TILES, size // _SMALLEST))
    edges: NDArray[np.intp] = first + (last - first) * np.arange(count + 1) // count
    return edges


def _spread(edges: NDArray[np.intp]) -> NDArray[np.intp]:
    """Rows (n, 1, m) spread over the overlap, as many of each frame."""
    first, size = edges[:, :1], edges[:, -1:] - edges[:, :1]
    count = max(1, min(_ROWS, int(size.min())))
    rows: NDArray[np.intp] = (first + size * np.arange(count) // count)[:, None]
    return rows


def _variance(strips: Array, sides: Array) -> Array:
    """(n,) variance of the columns between two sides (n, 2) of strips (n, 1, m, w)."""
    pixels = (sides[:, 1] - sides[:, 0]) * strips.shape[2]
    mean = _sums_across(_sum_of_rows(strips), sides)[:, 0] / pixels
    power = _sums_across(_sum_of_rows(strips, strips), sides)[:, 0] / pixels
    return power - mean * mean


def _sum_of_rows(*factors: Array) -> Array:
    """Sums (n, k, w) over the rows of strips (n, k, m, w), or of the products of two."""
    xp = array_namespace(factors[0])
    if len(factors) == 1:
        return factors[0].sum(axis=2).astype(np.float64)
    return xp.einsum("ijkl,ijkl->ijl", *factors).astype(np.float64)


def _sums_across(sums: Array, edges: Array) -> Array:
    """Sums over tiles (n, k * tiles) of columns (n, k, w) between edges (n, tiles + 1)."""
    xp = array_namespace(sums)
    running = xp.zeros((*sums.shape[:2], sums.shape[2] + 1))
    running[:, :, 1:] = xp.cumsum(sums, axis=2)
    at = xp.take_along_axis(running, xp.broadcast_to(edges[:, None], (*sums.shape[:2], edges.shape[1])), axis=2)
    return xp.diff(at, axis=2).reshape(sums.shape[0], -1)


def _moved(frames: Array, rows: NDArray[np.intp], peak: NDArray[np.intp]) -> Array:
    """Rows (n, k, m) of frames (n, h, w) at whole shifts, without their means; columns beyond the overlap are zero."""
    xp = array_namespace(frames)
    count, height, width = frames.shape
    dtype = working_dtype(frames)
    rows = np.clip(rows - peak[:, 0, None, None], 0, height - 1)
    means = xp.zeros(count, dtype)
    if frames.dtype.kind != "f":
        means = frames.mean(axis=(1, 2), dtype=np.float64).astype(dtype)
    if xp is np:
        moved = np.zeros((*rows.shape, width), dtype)
        for i in range(count):
            to, of = _overlap(int(peak[i, 1]), width)
            np.subtract(
                np.take(frames[i], rows[i], axis=0)[:, :, of], means[i], out=moved[i, :, :, to], casting="unsafe"
            )
        return moved
    columns = xp.arange(width) - xp.asarray(peak[:, 1:])
    inside = (columns >= 0) & (columns < width)
    batch = xp.arange(count)[:, None, None, None]
    columns = xp.clip(columns, 0, width - 1)[:, None, None]
    moved = frames[batch, xp.asarray(rows)[..., None], columns].astype(dtype)
    return (moved - means[:, None, None, None]) * inside[:, None, None]


def _overlap(shift: int, size: int) -> tuple[slice, slice]:
    """Where a line of pixels lies after it was shifted, and which of its pixels those are."""
    shift = min(max(shift, -size), size)
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
