"""Correlation around a peak over one overlap: that of the peak itself.

The overlap of two images at a shift one nearer to zero has a row more at either end than at the peak, and at a shift
one farther off it has a row less: opposite neighbours of a peak do not compare the same pixels. Where images end in
something else than the scene (a frame, what a stage or a simulation filled in, vignetting) that tilts the peak: 0.005
pixels where a speckle image was moved by whole pixels and filled with white. Of the two crops that lie on each other at
the peak, opposite shifts compare the same pairs. Normalised correlation over their overlaps is the given one less the
lines along the rim that only the larger overlaps have, so it costs a few lines of each image and no pass over them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace

_STEPS = np.arange(-1, 2)
_LEAST_VARIANCE = 1e-4
"""Share of an overlap's sum of squares that must be left without the lines along its rim."""


def on_common_overlap(
    near: Array, left: Array, right: Array, peak: NDArray[np.intp], of_left: Array, of_right: Array
) -> Array:
    """Zero-mean normalised correlation of the parts that overlap at a peak, at the 3 x 3 shifts around it.

    Parameters
    ----------
    near : ndarray, shape (n, 3, 3)
        Zero-mean normalised correlation over the whole overlap of each shift; NaN where there is none.
    left, right : ndarray, shape (1 or n, h, w) and (n, h, w)
        The images, at a peak right moved by it lies on left.
    peak : ndarray of int, shape (n, 2)
        The shift in the middle of `near`, in rows and columns.
    of_left, of_right : ndarray, shape (2, n, 3, 3)
        Sum, and sum of squares about the mean, over the overlap at each of the shifts.

    Returns
    -------
    ndarray, shape (n, 3, 3)
        As given where the parts are too small or too flat.
    """
    xp = array_namespace(near)
    shape = right.shape[1:]
    shifts = [peak[:, axis, None] + _STEPS for axis in (0, 1)]
    sides = [np.maximum(size - abs(shift), 0) for size, shift in zip(shape, shifts, strict=True)]
    count = xp.asarray((sides[0][:, :, None] * sides[1][:, None, :]).astype(np.float64))
    pairs = xp.maximum(count, 1.0)
    sums = [of_left[0], of_left[1] + of_left[0] ** 2 / pairs, of_right[0], of_right[1] + of_right[0] ** 2 / pairs]
    products = near * xp.sqrt(of_left[1] * of_right[1]) + of_left[0] * of_right[0] / pairs
    rim = _rim(left, right, peak)
    n, g, gg, f, ff, fg = (whole - part for whole, part in zip((count, *sums, products), rim, strict=True))
    pairs = xp.maximum(n, 1.0)
    of_g, of_f = gg - g * g / pairs, ff - f * f / pairs
    usable = (n > 1) & (of_g > _LEAST_VARIANCE * sums[1]) & (of_f > _LEAST_VARIANCE * sums[3])
    score = (fg - g * f / pairs) / xp.sqrt(xp.where(usable, of_g * of_f, 1.0))
    return xp.where(usable & (rim[0] > 0), xp.clip(score, -1.0, 1.0), near)


def overlap_moments(images: Array, peak: NDArray[np.intp], *, of_right: bool) -> Array:
    """Sums and sums of squares about the mean (2, n, 3, 3) over the overlaps around peaks (n, 2).

    Of images (1 or n, h, w), of zero mean for their rounding, as the left or the right of each pair.
    """
    xp = array_namespace(images)
    shifts = [peak[:, axis, None] + _STEPS for axis in (0, 1)]
    bounds = []
    for size, shift in zip(images.shape[1:], shifts, strict=True):
        toward = -shift if of_right else shift
        first = np.clip(toward, 0, size)[..., None]
        last = np.clip(size + toward, 0, size)[..., None]
        place = np.arange(size)
        bounds.append(xp.asarray(((place >= first) & (place < last)).astype(images.dtype)))
    rows, columns = bounds[0], bounds[1].transpose(0, 2, 1)
    sums, squares = (
        (rows.astype(np.float64) @ (values @ columns).astype(np.float64)) for values in (images, images * images)
    )
    sides = [np.maximum(size - abs(shift), 0) for size, shift in zip(images.shape[1:], shifts, strict=True)]
    pairs = xp.asarray(np.maximum(sides[0][:, :, None] * sides[1][:, None, :], 1).astype(np.float64))
    return xp.stack([sums, squares - sums * sums / pairs])


def _rim(left: Array, right: Array, peak: NDArray[np.intp]) -> list[Array]:
    """What the larger overlaps have beyond those of the crops: number of pairs, sums and squares, sums of products.

    Six arrays (n, 3, 3). The overlap is larger at the shifts on that side of a peak on which zero lies.
    """
    xp = array_namespace(right)
    toward_zero = -np.sign(peak)
    rows = _lines(left, right, peak, 0)
    columns = _lines(left, right, peak, 1)
    larger = [xp.asarray((side[:, None] == _STEPS) & (side[:, None] != 0)) for side in toward_zero.T]
    return [
        xp.where(larger[0][:, :, None], of_rows[:, None, :], 0.0)
        + xp.where(larger[1][:, None, :], of_columns[:, :, None], 0.0)
        for of_rows, of_columns in zip(rows, columns, strict=True)
    ]


def _lines(left: Array, right: Array, peak: NDArray[np.intp], axis: int) -> list[Array]:
    """Six arrays (n, 3): sums over the first and the last line across `axis`, at the shifts -1, 0, 1 along them.

    Lines of rows are as long as the overlap; of columns, as the crops, so that no corner counts twice.
    """
    xp = array_namespace(right)
    size, length = (right.shape[1:], right.shape[:0:-1])[axis]
    across, along = peak[:, axis], peak[:, 1 - axis]
    far = np.minimum(abs(across), size)
    zero = np.zeros_like(far)
    beyond, last = np.minimum(size - far, size - 1), np.full_like(far, size - 1)
    before = np.maximum(far - 1, 0)
    ends = np.stack([zero, beyond], axis=1), np.stack([before, last], axis=1)
    positive = (across > 0)[:, None]
    f = _taken(right, np.where(positive, ends[0], ends[1]), axis)
    g = _taken(left, np.where(positive, ends[1], ends[0]), axis)
    # The line of left, moved onto that of right, with an element more at either end.
    place = np.arange(-1, length + 1)
    source = place + along[:, None]
    inside = (source >= 0) & (source < length)
    within = np.ones((peak.shape[0], length), dtype=bool)
    if axis == 1:
        inside &= (place >= 0) & (place < length)
        within = inside[:, 1:-1]
    at = xp.asarray(np.clip(source, 0, length - 1))[:, None]
    present, counted = xp.asarray(inside.astype(np.float64))[:, None], xp.asarray(within.astype(np.float64))[:, None]
    g = xp.take_along_axis(g, xp.broadcast_to(at, (*g.shape[:2], length + 2)), axis=2) * present
    f = f * counted
    by_step = []
    for step in range(3):
        other, paired = g[:, :, step : step + length], present[:, :, step : step + length]
        pairs = counted * paired * xp.ones_like(f)
        terms = pairs, other * counted, other * other * counted, f * paired, f * f * paired, f * other
        by_step.append([term.sum(axis=(1, 2)) for term in terms])
    return [xp.stack(parts, axis=1) for parts in zip(*by_step, strict=True)]


def _taken(images: Array, lines: NDArray[np.intp], axis: int) -> Array:
    """Rows or columns (n, 2) of images (1 or n, h, w) as float64, (n, 2, length)."""
    xp = array_namespace(images)
    each = xp.zeros(lines.shape, dtype=np.intp)
    if images.shape[0] > 1:
        each += xp.arange(lines.shape[0])[:, None]
    chosen = images.swapaxes(1, 2) if axis == 1 else images
    return chosen[each, xp.asarray(lines)].astype(np.float64)
