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

Definition. Tiles (:class:`Tiles`) are fixed to the reference; of large images every fourth or second row of tiles is
taken, unless the scene of a single reference is uneven. Of the reference, once, with zero mean: s is g convolved with
the weighting's kernel (g itself without one), G the central differences of s along an axis, averaged over three
neighbours along the other, and D the central differences of g, which is constant beyond its rim. Of every frame,
f'(x) = f(x - p) with p the whole shift, over each tile that lies in the overlap:

    F = sum f',    Q = sum f'^2,    S = sum s f',    T = sum G f'  (two components).

With m and l the means of f' and g over these n pixels, v the variance of the white noise of g, which would take the
gain for less than it is, b = sum s (f' - m) / (sum s (g - l) - n v), and o the shift less p,

    t = T - m sum G - b (sum G (g - l) + sum G D o)        for each tile.

What bends between whole shifts is no change: a further offset o' is solved for that takes the sum of
t - (sum G D) o' over all tiles to zero. Of the K tiles, the scatter is

    K / (K - 3) sum over tiles t t^T / (n N var f' var g),    N the pixels of the whole overlap,

K / (K - 1) for the mean that was taken off, (K - 1) / (K - 3) for Student's distribution being wider than the normal
one; and the covariance of the shift is H^-1 scatter H^-1, H being the Hessian of the plane at its peak. Two errors that
no residual shows are added: of the plane's interpolation between whole shifts (`_interpolation_error`), and of what
enters and leaves at the edges of the overlap where a frame moved by a fraction of a pixel (`AT_EDGES`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.correlation.subpixel import MIN_LOGARITHM, quadratic_terms
from xcorr_app.correlation.weighting import RADIUS, smooth
from xcorr_app.gpu.peaks.noise_sums import LAGS, RowsAndProducts, started_rows_and_products
from xcorr_app.gpu.peaks.reference_tiles import reference_tiles
from xcorr_app.gpu.peaks.tile_scatter import TileGrid, tile_scatter
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array, to_host
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of
from xcorr_app.registration.quality import NOISE_PERIOD, clean_fraction, clean_of

_TILES = 12
"""Tiles along each axis, where they are not smaller than `_SMALLEST` pixels."""
_SMALLEST = 12
FEWEST_TILES = 6
"""Tiles below which their scatter says nothing."""
_CHOSEN = ((384, slice(1, None, 4)), (224, slice(None, None, 2)), (0, slice(None)))
"""Which rows of tiles are looked at in images of at least so many rows."""
_UNEVEN = 1.6
"""By how much the scene's variance in those rows may differ from that of the whole image."""
_MARGIN = RADIUS + 2
"""Pixels around a tile that its slopes depend on."""
_STEADY = 20.0
"""Significance from which a peak's own curvature is steady enough."""
_FEWEST_PEAKS = 4
"""Peaks of a stack whose median shape is better than the shape of one that is noisy."""
_OF_QUARTIC = 0.00966
"""Root mean square of d (4 d^2 + 4 e^2 - 1) / 12 for d, e between -1/2 and 1/2."""
_FOURTH = np.array([1.0, -4.0, 6.0, -4.0, 1.0])
_SECOND = np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / 12
_SHARPEST = 2.4
"""Fourth over second derivative of a peak of a single pixel."""
_MIN_CLEAN = 0.1
"""Share of the product of a smoothed image and itself that is taken for the scene at least."""
AT_EDGES = 0.04
"""Error in pixels, times the pixels along an axis, by what enters and leaves at the edges of the overlap.

Root mean square of scenes blurred by 4 and 6 pixels, 384 x 384, without noise (0.039 to 0.049); none at whole shifts,
where opposite neighbours of the peak compare the same pixels.
"""


@dataclass(frozen=True)
class Tiles:
    """Rows of tiles of an image, fixed to the reference."""

    first_rows: tuple[int, ...]
    left: int
    shape: tuple[int, int]
    """Rows and columns of a tile."""
    columns: int
    """Tiles along a row."""

    @classmethod
    def of(cls, shape: tuple[int, int], *, every_row: bool = False) -> Tiles:
        """Tiles of images of a shape: some rows of them, or every one."""
        counts = [max(1, min(_TILES, size // _SMALLEST)) for size in shape]
        height, width = (size // count for size, count in zip(shape, counts, strict=True))
        top, left = ((size % count) // 2 for size, count in zip(shape, counts, strict=True))
        chosen = next(part for rows, part in _CHOSEN if shape[0] >= rows)
        rows = range(top, top + counts[0] * height, height)
        first_rows = tuple(rows if every_row else rows[chosen])
        return cls(first_rows, left, (height, width), counts[1])

    @property
    def width(self) -> int:
        """Columns of all tiles of a row."""
        return self.columns * self.shape[1]

    @property
    def grid(self) -> TileGrid:
        """The same as numbers."""
        pitch = self.first_rows[1] - self.first_rows[0] if len(self.first_rows) > 1 else self.shape[0]
        return TileGrid(len(self.first_rows), self.columns, *self.shape, self.first_rows[0], pitch, self.left)

    def cut(self, images: Array, margin: int = 0) -> Array:
        """Rows of tiles of images (n, h, w), (n, rows, height + 2 margin, w), padded by `margin` rows on both sides."""
        xp = array_namespace(images)
        height = self.shape[0] + 2 * margin
        return xp.stack([images[:, first : first + height] for first in self.first_rows], axis=1)

    def inside(self, peak: NDArray[np.intp], shape: tuple[int, int]) -> NDArray[np.bool_]:
        """(n, rows, columns) whether a tile lies within the overlap of images with whole shifts (n, 2)."""
        parts = []
        for axis, first in enumerate((np.array(self.first_rows), self.left + self.shape[1] * np.arange(self.columns))):
            low, high = np.maximum(peak[:, axis], 0)[:, None], (shape[axis] + np.minimum(peak[:, axis], 0))[:, None]
            parts.append((first >= low) & (first + self.shape[axis] <= high))
        inside: NDArray[np.bool_] = parts[0][:, :, None] & parts[1][:, None]
        return inside

    def sums(self, *factors: Array) -> Array:
        """Sums (n, rows, columns) over tiles of values (n, rows, height, width), or of the products of two."""
        xp = array_namespace(factors[0])
        if len(factors) == 1:
            sums = factors[0].sum(axis=2)
        elif is_device_array(factors[0]):
            sums = (factors[0] * factors[1]).sum(axis=2)
        elif factors[1].shape[0] == 1:
            sums = xp.einsum("ijkl,jkl->ijl", factors[0], factors[1][0])
        else:
            sums = xp.einsum("ijkl,ijkl->ijl", *factors)
        return sums.reshape(*sums.shape[:2], self.columns, self.shape[1]).sum(axis=3, dtype=np.float64)


class ReferenceSlopes:
    """Reference images (1 or n, h, w) and their slopes on tiles; of a single one made once for any number of frames.

    `clean` (1 or n) is the fraction of the variance of each that is not white noise, looked for where it is not given.
    """

    def __init__(
        self,
        values: Array,
        kernel: NDArray[np.float64] | None,
        clean: NDArray[np.float64] | None = None,
        started: Callable[[], RowsAndProducts] | None = None,
    ) -> None:
        xp = array_namespace(values)
        values = values.astype(working_dtype(values), copy=False)
        if is_device_array(values) and values.dtype == np.float32:
            self._by_kernels(values, kernel, clean, started or started_slopes(values, noisy=clean is None))
            return
        self.clean = clean = clean_fraction(values) if clean is None else clean
        images = values - values.mean(axis=(1, 2), keepdims=True)
        power = (images * images).mean(axis=(1, 2), dtype=np.float64)
        self.noise = power * (1 - xp.asarray(clean))
        """(1 or n,) variance of their white noise."""
        self.tiles = tiles = Tiles.of(values.shape[1:])
        if len(images) == 1:
            part = tiles.cut(images).astype(np.float64)
            share = float(((part * part).mean() - self.noise[0]) / xp.maximum(power[0] - self.noise[0], 1e-300))
            if _is_uneven(share):
                self.tiles = tiles = Tiles.of(values.shape[1:], every_row=True)
        strips = _strips(images, tiles)
        count, rows, height, width = strips.shape
        g, s, wy, wx, gy, gx = (
            factor.reshape(count, rows, *factor.shape[1:])
            for factor in _slopes(strips.reshape(-1, height, width), kernel)
        )
        self.factors = xp.stack([s, wy, wx])
        """Smoothed images and their slopes along rows and columns, (3, 1 or n, rows, height, width)."""
        pairs = (g,), (g, g), (s,), (s, g), (wy,), (wx,), (wy, g), (wx, g), (wy, gy), (wy, gx), (wx, gy), (wx, gx)
        self.sums = xp.stack([tiles.sums(*pair) for pair in pairs])
        """(12, 1 or n, rows, columns) over tiles: of all products that frames have no part in."""

    def _by_kernels(
        self,
        values: Array,
        kernel: NDArray[np.float64] | None,
        clean: NDArray[np.float64] | None,
        started: Callable[[], RowsAndProducts],
    ) -> None:
        xp, (height, width) = array_namespace(values), values.shape[1:]
        of_rows, products = started()
        if clean is None:
            clean = np.ones(len(values)) if products is None else clean_of(products)
        self.clean = clean
        mean, power = (of_rows.sum(axis=1) / (height * width)).T
        power -= mean * mean
        noise = power * (1 - clean)
        on_device = xp.asarray(np.stack([mean, noise]))
        self.noise = on_device[1]
        self.tiles = tiles = Tiles.of((height, width))
        if len(values) == 1:
            rows = (np.array(tiles.first_rows)[:, None] + np.arange(tiles.shape[0])).ravel()
            total, squares = of_rows[0, rows].mean(axis=0) / width
            share = (squares - 2 * mean[0] * total + mean[0] ** 2 - noise[0]) / max(power[0] - noise[0], 1e-300)
            if _is_uneven(float(share)):
                self.tiles = tiles = Tiles.of((height, width), every_row=True)
        smoothed = None
        if kernel is not None:
            strips = _strips(values - xp.asarray(mean.astype(np.float32))[:, None, None], tiles)
            smoothed = smooth(strips.reshape(-1, *strips.shape[2:]), kernel.astype(np.float32)).astype(np.float32)
        self.factors, self.sums = reference_tiles(values, on_device[0], smoothed, tiles.grid)


def started_slopes(values: Array, *, noisy: bool) -> Callable[[], RowsAndProducts]:
    """Begin with what `ReferenceSlopes` needs to know of images (n, h, w) on a device; `noisy`: their noise too."""
    height, width = values.shape[1:]
    return started_rows_and_products(values, min(NOISE_PERIOD, height) if noisy and min(height, width) > LAGS else 0)


def _is_uneven(share: float) -> bool:
    """Whether some rows of a single image have so different a `share` of its variance that every row is needed."""
    # Of a few bright things those rows may hold none, or all.
    return not 1 / _UNEVEN < share < _UNEVEN


def _strips(images: Array, tiles: Tiles) -> Array:
    """Rows of tiles of images with `_MARGIN` pixels around them, constant beyond the rim."""
    columns = slice(tiles.left, tiles.left + tiles.width + 2 * _MARGIN)
    around = (0, 0), (_MARGIN, _MARGIN), (_MARGIN, _MARGIN)
    return tiles.cut(array_namespace(images).pad(images, around, mode="edge")[..., columns], _MARGIN)


def _slopes(images: Array, kernel: NDArray[np.float64] | None) -> list[Array]:
    """Images, smoothed as the plane was; the slopes of the smoothed; those of the images. `_MARGIN` pixels go."""
    xp = array_namespace(images)
    near = slice(RADIUS, -RADIUS)
    smoothed = smooth(images, kernel.astype(images.dtype)).astype(images.dtype) if kernel is not None else None
    images = images[:, near, near]
    smoothed = images if smoothed is None else smoothed
    # The slope of the polynomial through 3 x 3 values, which the sub-pixel fit is.
    wy, wx = _slope(_mean_of_3(smoothed, 2), 1), _slope(_mean_of_3(smoothed, 1), 2)
    rim = _MARGIN - RADIUS
    inner = (slice(None), slice(rim, -rim), slice(rim, -rim))
    return [
        xp.ascontiguousarray(each[inner]) for each in (images, smoothed, wy, wx, _slope(images, 1), _slope(images, 2))
    ]


@dataclass
class PeakShapes:
    """What standard errors follow from, one entry a frame; NaN where not known."""

    scatter: NDArray[np.float64]
    """(T, 2, 2) covariance of the slope of the correlation at its peak."""
    hessian: NDArray[np.float64]
    """(T, 2, 2) of the peak."""
    height: NDArray[np.float64]
    """(T,) of the peak, in the units of the Hessian."""
    quartic: NDArray[np.float64]
    """(T, 2) fourth over second derivative of the logarithm of the plane at its peak, per square pixel."""

    @classmethod
    def empty(cls, count: int) -> PeakShapes:
        """Nothing known yet."""
        sizes = (count, 2, 2), (count, 2, 2), (count,), (count, 2)
        return cls(*(np.full(size, np.nan) for size in sizes))

    def replace(self, rows: NDArray[np.intp] | slice, other: PeakShapes) -> None:
        """Write the shapes of `other` into these rows."""
        for field in fields(self):
            getattr(self, field.name)[rows] = getattr(other, field.name)

    def of(self, rows: NDArray[np.intp]) -> PeakShapes:
        """Shapes of some of the frames."""
        return PeakShapes(*(getattr(self, field.name)[rows] for field in fields(self)))

    def standard_errors(self, significance: NDArray[np.float64]) -> NDArray[np.float64]:
        """(T, 2) in pixels; infinite where a peak is none.

        Frames of one stack have peaks of one shape. Where peaks hardly stand out (`significance` (T,)), their own
        curvatures are mostly noise, and the median of the stack takes their place.
        """
        hessian = self.hessian
        positive, is_peak = self.height > 0, _is_peak(hessian)
        good = positive & is_peak
        if np.count_nonzero(good) >= _FEWEST_PEAKS:
            with np.errstate(invalid="ignore"):
                noisy = positive & (significance < _STEADY)
            if noisy.any() and _is_peak(typical := _typical(hessian[good], self.height[good]))[0]:
                noisy &= np.isfinite(hessian).all(axis=(1, 2))
                hessian = np.where(noisy[:, None, None], typical * self.height[:, None, None], hessian)
                is_peak = _is_peak(hessian)
        a, b, _, c = hessian.reshape(-1, 4).T
        p, q, _, r = self.scatter.reshape(-1, 4).T
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            # The diagonal of H^-1 S H^-1.
            determinant = a * c - b * b
            of_rows, of_columns = c * c * p - 2 * b * c * q + b * b * r, b * b * p - 2 * a * b * q + a * a * r
            variance = np.stack([of_rows, of_columns], axis=1) / (determinant * determinant)[:, None]
            sigma = np.sqrt(variance + self._interpolation_error() ** 2)
        if is_peak.all() and np.isfinite(sigma).all():
            return np.asarray(sigma)
        is_peak &= ~(np.isinf(p) | np.isinf(q) | np.isinf(r))
        unknown = np.isnan(a) | np.isnan(b) | np.isnan(c) | np.isnan(p) | np.isnan(q) | np.isnan(r)
        return np.where(is_peak[:, None], sigma, np.where(unknown, np.nan, np.inf)[:, None])

    def _interpolation_error(self) -> NDArray[np.float64]:
        """(2,) root mean square error in pixels of the Gaussian through 3 x 3 values of the plane.

        Of a peak whose logarithm has the derivatives -a and q of second and fourth order, alike in all directions, the
        fit is off by ``q / a * d (4 d^2 + 4 e^2 - 1) / 12``, d and e being the place of the peak between whole shifts.
        """
        # A sum is not finite where one of the two is not, and made several times as fast as `all` of them.
        known = np.isfinite(self.quartic[:, 0] + self.quartic[:, 1])
        quartic = self.quartic if known.all() else self.quartic[known]
        if len(quartic) >= _FEWEST_PEAKS:
            quartic = _median(quartic)
        # Noise of a frame on itself is a spike: of a few peaks the smoothest is taken.
        error: NDArray[np.float64] = _OF_QUARTIC * np.abs(quartic).min(axis=0, initial=_SHARPEST)
        return error


def _typical(hessian: NDArray[np.float64], height: NDArray[np.float64]) -> NDArray[np.float64]:
    """Median shape (1, 2, 2) of peaks."""
    return _median(hessian / height[:, None, None])


def _median(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Median (1, ...) of finite values (n, ...): what NumPy's own does around it takes several times as long."""
    middle = (len(values) - 1) // 2, len(values) // 2
    ordered = np.partition(values.reshape(len(values), -1).T, middle, axis=1)
    median: NDArray[np.float64] = (ordered[:, middle[0]] + ordered[:, middle[1]]) / 2
    return median.reshape(1, *values.shape[1:])


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
    around: NDArray[np.float64] | None = None,
) -> PeakShapes:
    """Shapes of the peaks of frames (n, h, w) with integer and refined shifts (n, 2), from the plane's 3 x 3 values.

    `around` are 5 x 5 values of the plane that is not weighted.
    """
    xp = array_namespace(frames)
    tiles, shape = reference.tiles, frames.shape[1:]
    inside = tiles.inside(peak, shape)
    offset = np.nan_to_num(shift - peak)
    if is_device_array(frames) and reference.factors.dtype == np.float32 and name_of(frames.dtype) in INPUT_TYPES:
        of_reference = reference.factors, reference.sums, reference.noise
        scatter = tile_scatter(frames, of_reference, tiles.grid, peak, offset)
    else:
        moved = _moved(frames, tiles, peak)
        sums = xp.stack([tiles.sums(moved), *(tiles.sums(moved, factor) for factor in (moved, *reference.factors))])
        pixels = np.prod(np.maximum(np.array(shape) - np.abs(peak), 0), axis=1).astype(np.float64)
        scatter = to_host(_scatter(sums, reference, xp.asarray(inside), xp.asarray(offset), xp.asarray(pixels)))
    scatter[inside.sum(axis=(1, 2)) < FEWEST_TILES] = np.nan
    d, e, f = quadratic_terms(near)[:, 3:].T
    hessian = np.stack([2 * d, e, e, 2 * f], axis=1).reshape(-1, 2, 2)
    scatter += hessian @ np.diag(AT_EDGES / np.array(shape)) ** 2 @ hessian
    quartic = np.full((len(near), 2), np.nan) if around is None else _quartic(around)
    return PeakShapes(scatter, hessian, near[:, 1, 1].astype(np.float64), quartic)


def _quartic(around: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 2) fourth over second derivative of the logarithm of 5 x 5 values; NaN where there is none."""
    lines = np.stack([around[:, :, 2], around[:, 2]], axis=1).astype(np.float64)
    with np.errstate(invalid="ignore"):
        usable = (lines > MIN_LOGARITHM * lines[:, :, 2:3]).all(axis=2) & (lines[:, :, 2] > 0)
    logarithm = np.log(np.where(usable[:, :, None], lines, 1.0))
    bend = logarithm @ _SECOND
    usable &= bend < 0
    return np.where(usable, logarithm @ _FOURTH / np.where(usable, bend, 1.0), np.nan)


def _scatter(sums: Array, reference: ReferenceSlopes, inside: Array, offset: Array, pixels: Array) -> Array:
    """Covariance (n, 2, 2) of the slope of the normalised correlation at its peak, from sums over tiles."""
    xp = array_namespace(sums)
    count = sums.shape[1]
    # (sums, n, tiles), those beyond the overlap zero.
    inside = inside.reshape(count, -1)
    f, ff, smoothed_f, wy_f, wx_f = sums.reshape(5, count, -1) * inside
    of_reference = reference.sums.reshape(len(reference.sums), reference.sums.shape[1], -1) * inside
    g, gg, smoothed, smoothed_g, wy, wx, wy_g, wx_g, *bends = of_reference
    number = inside.sum(axis=1).astype(np.float64)
    n = xp.maximum(number * (reference.tiles.shape[0] * reference.tiles.shape[1]), 1.0)
    mean, level, total = (part.sum(axis=1) / n for part in (f, g, smoothed))
    norm = (ff.sum(axis=1) - n * mean**2) * (gg.sum(axis=1) - n * level**2) * pixels / n
    own = smoothed_g.sum(axis=1) - n * level * total
    clean = xp.maximum(own - n * reference.noise, _MIN_CLEAN * own)
    gain = xp.where(clean > 0, (smoothed_f.sum(axis=1) - n * mean * total) / xp.where(clean > 0, clean, 1.0), 0.0)
    level, mean, gain, oy, ox = (values[:, None] for values in (level, mean, gain, offset[:, 0], offset[:, 1]))
    rest = [
        t - mean * w - gain * (w_g - level * w + oy * w_y + ox * w_x)
        for t, w, w_g, w_y, w_x in zip((wy_f, wx_f), (wy, wx), (wy_g, wx_g), bends[::2], bends[1::2], strict=True)
    ]
    # The slopes leave out what bends between whole shifts: a further offset takes the sum of all tiles to zero.
    a, b, c, d = (part.sum(axis=1) for part in bends)
    p, q = (part.sum(axis=1) for part in rest)
    determinant = a * d - b * c
    safe = xp.where(determinant > 0, determinant, np.inf)
    further = ((p * d - q * b) / safe)[:, None], ((q * a - p * c) / safe)[:, None]
    rest = [t - further[0] * w_y - further[1] * w_x for t, w_y, w_x in zip(rest, bends[::2], bends[1::2], strict=True)]
    slopes, usable = xp.stack(rest, axis=1), (norm > 0)[:, None, None]
    covariance = slopes @ slopes.transpose(0, 2, 1) * (number / xp.maximum(number - 3, 1.0))[:, None, None]
    return xp.where(usable, covariance / xp.where(usable, norm[:, None, None], 1.0), np.inf)


def _moved(frames: Array, tiles: Tiles, peak: NDArray[np.intp]) -> Array:
    """Rows of tiles of frames (n, h, w) at whole shifts, (n, rows, height, width); zero beyond the overlap."""
    xp = array_namespace(frames)
    count, height, width = frames.shape
    dtype = working_dtype(frames)
    means = xp.zeros(count, dtype)
    if frames.dtype.kind != "f":
        means = frames.mean(axis=(1, 2), dtype=np.float64).astype(dtype)
    if xp is np:
        moved = np.zeros((count, len(tiles.first_rows), tiles.shape[0], tiles.width), dtype)
        for i, (dy, dx) in enumerate(peak.tolist()):
            to_x, of_x = _overlap(tiles.left, tiles.width, dx, width)
            for j, first in enumerate(tiles.first_rows):
                to_y, of_y = _overlap(first, tiles.shape[0], dy, height)
                np.subtract(frames[i, of_y, of_x], means[i], out=moved[i, j, to_y, to_x], casting="unsafe")
        return moved
    first = xp.asarray(np.array(tiles.first_rows))[:, None] + xp.arange(tiles.shape[0])
    shifts = xp.asarray(peak)
    rows = first[None] - shifts[:, 0, None, None]
    columns = tiles.left + xp.arange(tiles.width) - shifts[:, 1:]
    inside = ((rows >= 0) & (rows < height))[..., None] & ((columns >= 0) & (columns < width))[:, None, None]
    rows, columns = xp.clip(rows, 0, height - 1)[..., None], xp.clip(columns, 0, width - 1)[:, None, None]
    moved = frames[xp.arange(count)[:, None, None, None], rows, columns].astype(dtype)
    return (moved - means[:, None, None, None]) * inside


def _overlap(first: int, count: int, shift: int, size: int) -> tuple[slice, slice]:
    """Which of `count` places from `first` on a shifted line of pixels covers, and with which of its pixels."""
    begin = min(max(shift - first, 0), count)
    end = max(min(size + shift - first, count), begin)
    return slice(begin, end), slice(first + begin - shift, first + end - shift)


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
