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

Definition. Tiles (`reference_slopes.py`) are fixed to the reference; of large images every fourth or second row of them
is taken, unless the scene of a single reference is uneven. Of the reference, once, with zero mean: s is g convolved
with the weighting's kernel (g itself without one), G the central differences of s along an axis, averaged over three
neighbours along the other, D the central differences of g, which is constant beyond its rim, and C its second ones. Of
every frame, f'(x) = f(x - p) with p the whole shift, over each tile that lies in the overlap:

    F = sum f',    Q = sum f'^2,    S = sum s f',    T = sum G f'  (two components).

With m and l the means of f' and g over these n pixels, o the shift less p, h the height of the peak over that of the
plane at p, v the variance of the white noise of g, which would take the gain for less than it is, and
b = h sum s (f' - m) / (sum s (g - l) - n v),

    t = T - m sum G - b (sum G (g - l) + sum G D o + sum G C o o / 2)        for each tile.

Fine structure passes for noise: v is at most the variance of g over the tiles, and without a kernel what the peak's
height leaves of it. Sums of G D are less what v makes of them: noise has slopes, which move no frame, where little of
the scene is seen most of all.
What bends between whole shifts is no change: a further offset o' is solved for that takes the sum of
t - (sum G D) o' over all tiles to zero. Of the K tiles, the scatter is

    K / (K - 3) sum over tiles t t^T / (n N var f' var g),    N the pixels of the whole overlap,

K / (K - 1) for the mean that was taken off, (K - 1) / (K - 3) for Student's distribution being wider than the normal
one, of which frames of one stack take less (`peak_shapes.py`); and the covariance of the shift is H^-1 scatter H^-1, H
being the Hessian of the plane at its peak. Where few tiles hold most of the slopes, as those with bright stars do, the
scatter has fewer degrees of freedom (Satterthwaite 1946, doi 10.2307/3002019): it is larger by 1 + 3 (1 / E - 1 / K),
with E = (sum of G D)^2 / sum of (G D)^2. Two errors that no residual shows are added: of the plane's interpolation
between whole shifts (`_interpolation_error`), and of what enters and leaves at the edges of the overlap where a frame
moved by a fraction of a pixel (`AT_EDGES`).
"""

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.correlation.subpixel import quadratic_terms
from xcorr_app.gpu.peaks.tile_scatter import tile_scatter
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array, to_host
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of
from xcorr_app.registration.standard_error.peak_shapes import PeakShapes, quartic_of
from xcorr_app.registration.standard_error.reference_slopes import ReferenceSlopes, Tiles

MIN_TILES = 6
"""Tiles below which their scatter says nothing."""
_MIN_CLEAN = 0.1
"""Share of the product of a smoothed image and itself that is taken for the scene at least."""
AT_EDGES = 0.04
"""Error in pixels, times the pixels along an axis, by what enters and leaves at the edges of the overlap.

Root mean square of scenes blurred by 4 and 6 pixels, 384 x 384, without noise (0.039 to 0.049); none at whole shifts,
where opposite neighbours of the peak compare the same pixels.
"""


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
    d, e, f = quadratic_terms(near)[:, 3:].T
    hessian, height = np.stack([2 * d, e, e, 2 * f], axis=1).reshape(-1, 2, 2), near[:, 1, 1].astype(np.float64)
    fall = -np.einsum("ni,nij,nj->n", offset, hessian, offset) / 2
    rise = 1 + np.maximum(fall, 0.0) / np.where(height > 0, height, np.inf)
    if is_device_array(frames) and reference.factors.dtype == np.float32 and name_of(frames.dtype) in INPUT_TYPES:
        of_reference = reference.factors, reference.sums, reference.noise
        risen = np.column_stack([offset, rise])
        scatter = tile_scatter(frames, of_reference, tiles.grid, peak, risen, plain=reference.plain)
    else:
        sums = frame_sums(frames, reference, peak)
        pixels = np.prod(np.maximum(np.array(shape) - np.abs(peak), 0), axis=1).astype(np.float64)
        of_frames = (xp.asarray(each) for each in (inside, offset, rise, pixels))
        scatter = to_host(_scatter(sums, reference, *of_frames))
    scatter[inside.sum(axis=(1, 2)) < MIN_TILES] = np.nan
    scatter += hessian @ np.diag(AT_EDGES / np.array(shape)) ** 2 @ hessian
    widening, freedom = reference.few_tiles()
    scatter *= widening[:, None, None]
    none = np.full((len(near), 2), np.nan)
    quartic = none if around is None else quartic_of(around)
    return PeakShapes(scatter, hessian, height, quartic, np.resize(freedom, len(near)), none)


def _scatter(
    sums: Array, reference: ReferenceSlopes, inside: Array, offset: Array, rise: Array, pixels: Array
) -> Array:
    """Covariance (n, 2, 2) of the slope of the normalised correlation at its peak, from sums over tiles."""
    xp = array_namespace(sums)
    slopes, _, _, varied = unshared(sums, reference, inside, offset, rise)
    number = inside.sum(axis=(1, 2)).astype(np.float64)
    norm = varied * pixels
    usable = (norm > 0)[:, None, None]
    covariance = slopes @ slopes.transpose(0, 2, 1) * (number / xp.maximum(number - 3, 1.0))[:, None, None]
    return xp.where(usable, covariance / xp.where(usable, norm[:, None, None], 1.0), np.inf)


def unshared(
    sums: Array, reference: ReferenceSlopes, inside: Array, offset: Array, rise: Array | float = 1.0
) -> tuple[Array, Array, Array, Array]:
    """Slopes t (n, 2, tiles) from `frame_sums`, zero beyond the overlap and in all; and what they belong to.

    That is the sums of G D (4, n, tiles) of the scene, the gain (n,), and n var f' var g of the tiles (n,). The peak is
    higher by the factor `rise` (n,) than at the whole shift.
    """
    xp = array_namespace(sums)
    count, pixels = sums.shape[1], reference.tiles.shape[0] * reference.tiles.shape[1]
    # (sums, n, tiles), those beyond the overlap zero.
    inside = inside.reshape(count, -1)
    f, ff, smoothed_f, wy_f, wx_f = sums.reshape(5, count, -1) * inside
    of_reference = reference.sums.reshape(len(reference.sums), reference.sums.shape[1], -1) * inside
    g, gg, smoothed, smoothed_g, wy, wx, wy_g, wx_g, *bends = of_reference
    n = xp.maximum(inside.sum(axis=1).astype(np.float64) * pixels, 1.0)
    mean, level, total = (part.sum(axis=1) / n for part in (f, g, smoothed))
    of_frame, of_image = ff.sum(axis=1) - n * mean**2, gg.sum(axis=1) - n * level**2
    product = (smoothed_f.sum(axis=1) - n * mean * total) * rise
    white, *of_white = reference.noise
    noise, own = n * white, smoothed_g.sum(axis=1) - n * level * total
    # Fine structure passes for noise: there is no more of it than frame and reference, if not smoothed, do not share.
    common = product**2 / xp.where(of_frame > 0, of_frame, np.inf) if reference.plain else 0.0
    noise = xp.maximum(xp.minimum(noise, of_image - common), 0.0)
    clean = xp.maximum(own - noise, _MIN_CLEAN * own)
    gains = xp.where(clean > 0, product / xp.where(clean > 0, clean, 1.0), 0.0)
    # A tile that was filled holds none, and no tile more than what it varies by.
    share = xp.minimum((pixels * noise / n)[:, None], gg - g * g / pixels) / xp.where(white > 0, white, np.inf)[:, None]
    for bend, by in zip((0, 3), of_white, strict=True):
        bends[bend] = bends[bend] - by[:, None] * share
    y, x = offset.T
    by_offset = [by[:, None] for by in (y, x, y * y / 2, y * x, x * x / 2)]
    level, mean, gain = (values[:, None] for values in (level, mean, gains))
    rest = [
        t - mean * w - gain * (w_g - level * w + sum(o * each for o, each in zip(by_offset, bent, strict=True)))
        for t, w, w_g, bent in (
            (wy_f, wy, wy_g, (*bends[:2], *bends[4:7])),
            (wx_f, wx, wx_g, (*bends[2:4], *bends[7:])),
        )
    ]
    # The slopes leave out what bends between whole shifts: a further offset takes the sum of all tiles to zero.
    bends = bends[:4]
    a, b, c, d = (part.sum(axis=1) for part in bends)
    p, q = (part.sum(axis=1) for part in rest)
    determinant = a * d - b * c
    safe = xp.where(determinant > 0, determinant, np.inf)
    further = ((p * d - q * b) / safe)[:, None], ((q * a - p * c) / safe)[:, None]
    rest = [t - further[0] * w_y - further[1] * w_x for t, w_y, w_x in zip(rest, bends[::2], bends[1::2], strict=True)]
    return xp.stack(rest, axis=1), xp.stack(bends), gains, of_frame * of_image / n


def frame_sums(frames: Array, reference: ReferenceSlopes, peak: NDArray[np.intp]) -> Array:
    """F, Q, S and both T (5, n, rows, columns) of frames (n, h, w) at whole shifts."""
    moved = _moved(frames, reference.tiles, peak)
    kinds = [(moved,), (moved, moved), *((moved, factor) for factor in reference.factors)]
    return array_namespace(frames).stack([reference.tiles.sums(*kind) for kind in kinds])


def _moved(frames: Array, tiles: Tiles, peak: NDArray[np.intp]) -> Array:
    """Rows of tiles of frames (n, h, w) at whole shifts, (n, rows, height, width); zero beyond the overlap."""
    xp = array_namespace(frames)
    count, height, width = frames.shape
    dtype = working_dtype(frames)
    is_float = frames.dtype.kind == "f"
    means = xp.zeros(count, dtype) if is_float else frames.mean(axis=(1, 2), dtype=np.float64).astype(dtype)
    if xp is np:
        moved = np.zeros((count, len(tiles.first_rows), tiles.shape[0], tiles.width), dtype)
        rows = _overlaps(np.array(tiles.first_rows), tiles.shape[0], peak[:, :1], height).tolist()
        columns = _overlaps(tiles.left, tiles.width, peak[:, 1:], width).tolist()
        for image, mean, found, along, ((left, right, x),) in zip(frames, means, moved, rows, columns, strict=True):
            for row, (top, bottom, y) in zip(found, along, strict=True):
                part = image[top + y : bottom + y, left + x : right + x]
                np.subtract(part, mean, out=row[top:bottom, left:right], casting="unsafe")
        return moved
    first = xp.asarray(np.array(tiles.first_rows))[:, None] + xp.arange(tiles.shape[0])
    shifts = xp.asarray(peak)
    rows = first[None] - shifts[:, 0, None, None]
    columns = tiles.left + xp.arange(tiles.width) - shifts[:, 1:]
    inside = ((rows >= 0) & (rows < height))[..., None] & ((columns >= 0) & (columns < width))[:, None, None]
    rows, columns = xp.clip(rows, 0, height - 1)[..., None], xp.clip(columns, 0, width - 1)[:, None, None]
    moved = frames[xp.arange(count)[:, None, None, None], rows, columns].astype(dtype)
    return (moved - means[:, None, None, None]) * inside


def _overlaps(first: NDArray[np.intp] | int, count: int, shift: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    """Which of `count` places from each `first` (m,) on lines of pixels cover that are shifted by (n, 1), (n, m, 3).

    The first, the one after the last, and what is to be added for the pixels that cover them.
    """
    away = shift - first
    begin = np.clip(away, 0, count)
    return np.stack([begin, np.clip(size + away, begin, count), -away], axis=2)
