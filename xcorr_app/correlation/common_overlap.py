"""Correlation around a peak over one overlap: that of the peak itself.

The overlap of two images at a shift one nearer to zero has a row more than at the peak, and one farther off a row less:
opposite neighbours of a peak do not compare the same pixels. Where images end in something else than the scene (a
frame, what a stage or a simulation filled in, vignetting) that tilts the peak: by 0.005 pixels where a speckle image
was moved by whole pixels and filled with white, and by 0.012 where noise makes the peak's flanks count more. Of the two
crops that lie on each other at the peak, opposite shifts compare the same pairs. Normalised correlation over their
overlaps is the given one less the lines along the rim that only the larger overlaps have, so it costs a few lines of
each image and no pass over them. This is of the host; a device has ``kernels/peaks/common_overlap.cu``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array

_MIN_VARIANCE = 1e-4
"""Share of an overlap's sum of squares that must be left without the lines along its rim."""


def on_common_overlap(
    around: Array, left: Array, right: Array, peak: NDArray[np.intp], of_left: Array, of_right: Array
) -> Array:
    """Zero-mean normalised correlation of the parts that overlap at a peak, at the shifts around it.

    Parameters
    ----------
    around : ndarray, shape (n, 2 r + 1, 2 r + 1)
        Zero-mean normalised correlation over the whole overlap of each shift; NaN where there is none.
    left, right : ndarray, shape (1 or n, h, w) and (n, h, w)
        The images, at a peak right moved by it lies on left. Those of a float type are expected standardised (zero
        mean, magnitude one): sums of products in float32 lose what differs in others.
    peak : ndarray of int, shape (n, 2)
        The shift in the middle of `around`, in rows and columns.
    of_left, of_right : ndarray, shape (2, n, 2 r + 1, 2 r + 1)
        Sum, and sum of squares about the mean, over the overlap at each of the shifts.

    Returns
    -------
    ndarray, shape (n, 2 r + 1, 2 r + 1)
        As given where the parts are too small or too flat.
    """
    radius = around.shape[1] // 2
    sides = _sides(right.shape[1:], peak, radius)
    count = (sides[0][:, :, None] * sides[1][:, None, :]).astype(np.float64)
    pairs = np.maximum(count, 1.0)
    sums = [of_left[0], of_left[1] + of_left[0] ** 2 / pairs, of_right[0], of_right[1] + of_right[0] ** 2 / pairs]
    products = around * np.sqrt(of_left[1] * of_right[1]) + of_left[0] * of_right[0] / pairs
    rim = _rim(left, right, peak, radius)
    n, g, gg, f, ff, fg = (whole - part for whole, part in zip((count, *sums, products), rim, strict=True))
    pairs = np.maximum(n, 1.0)
    of_g, of_f = gg - g * g / pairs, ff - f * f / pairs
    usable = (n > 1) & (of_g > _MIN_VARIANCE * sums[1]) & (of_f > _MIN_VARIANCE * sums[3])
    score = (fg - g * f / pairs) / np.sqrt(np.where(usable, of_g * of_f, 1.0))
    return np.where(usable & (rim[0] > 0), np.minimum(np.maximum(score, -1.0), 1.0), around)


def _sides(shape: tuple[int, int], peak: NDArray[np.intp], radius: int) -> list[NDArray[np.intp]]:
    """Rows (n, 2 r + 1) and columns of the overlaps around peaks."""
    steps = np.arange(-radius, radius + 1)
    return [np.maximum(size - abs(peak[:, axis, None] + steps), 0) for axis, size in enumerate(shape)]


def _rim(left: Array, right: Array, peak: NDArray[np.intp], radius: int) -> Array:
    """What the larger overlaps have beyond those of the crops: number of pairs, sums and squares, sums of products.

    Shape (6, n, 2 r + 1, 2 r + 1). The overlap is larger at the shifts on that side of a peak on which zero lies.
    """
    rim = 0.0
    for axis in (0, 1):
        nearer = -np.sign(peak[:, axis, None]) * np.arange(-radius, radius + 1)
        lines = _lines(left, right, peak, axis, radius)
        number, at = np.arange(peak.shape[0])[:, None], np.maximum(nearer - 1, 0)
        placed = lines[:, number, at] * (nearer > 0).astype(np.float64)[:, :, None]
        rim = rim + (placed if axis == 0 else placed.transpose(0, 1, 3, 2))
    return rim


def _lines(left: Array, right: Array, peak: NDArray[np.intp], axis: int, radius: int) -> Array:
    """Sums over the lines that an overlap has beyond the crops, (6, n, r, 2 r + 1).

    By how many shifts, 1 ... r, the overlap is nearer to zero across `axis`, and at the shifts -r ... r along it.
    At m shifts nearer to zero, line a of right at either end is on line m - 1 - a of left. Lines of rows are as long as
    the overlap; of columns, as the crops, so that no corner counts twice.
    """
    size, length = (right.shape[1:], right.shape[:0:-1])[axis]
    across, along = peak[:, axis, None], peak[:, 1 - axis, None]
    line, apart = np.arange(radius), abs(across)
    # Lines from either edge inwards, and from where the other image ends outwards.
    inwards = [
        np.broadcast_to(line, (apart.shape[0], radius)),
        np.broadcast_to(size - 1 - line, (apart.shape[0], radius)),
    ]
    outwards = [apart - 1 - line, size - apart + line]
    positive = across > 0
    ends = [[inwards[0], outwards[1]], [outwards[0], inwards[1]]]
    of_f = np.stack([np.where(positive, ours, theirs) for ours, theirs in zip(*ends, strict=True)], axis=1)
    of_g = np.stack([np.where(positive, theirs, ours) for ours, theirs in zip(*ends, strict=True)], axis=1)
    # Elements of a line of right that left has, and which of them enter; then from where to where at every step.
    first, last = (np.minimum(np.maximum(end - along, 0), length) for end in (0, length))
    last = np.maximum(last, first)
    enter = (np.zeros_like(first), np.full_like(last, length)) if axis == 0 else (first, last)
    step = np.arange(-radius, radius + 1)
    source = tuple(np.minimum(np.maximum(end + along, 0), length) for end in (-radius, length + radius))
    if axis == 1:
        source = first + along, last + along
    starts = np.maximum(enter[0], source[0] - along - step)
    stops = np.maximum(np.minimum(enter[1], source[1] - along - step), starts)
    dtype = np.result_type(left.dtype, right.dtype)
    dtype = dtype if dtype == np.float32 else np.dtype(np.float64)
    f = _laid(right, of_f, axis, enter, 0 * along, length, dtype)
    g = _laid(left, of_g, axis, source, radius - along, length + 2 * radius, dtype)
    products = np.empty((step.size, *f.shape[:3], radius), dtype)
    for at in range(step.size):
        # Line by line of either image: no copies, and products that BLAS leaves to one thread.
        np.matmul(f, g[..., at : at + length].swapaxes(2, 3), out=products[at])
    line_pairs = (line[:, None] + line == line[:, None, None]).reshape(radius, -1).astype(np.float64)
    of_products = products.sum(axis=2, dtype=np.float64).reshape(step.size, -1, radius * radius)
    # One product a frame: in one of all of them, rounding would depend on which share the call.
    of_products = of_products.swapaxes(0, 1) @ line_pairs.T
    # Which line of either image meets one of the other that there is.
    partner = line[:, None] - line
    has_f, has_g = ((lines >= 0) & (lines < size) for lines in (of_f, of_g))
    met_f, met_g = ((has[:, :, partner] & (partner >= 0)).astype(np.float64) for has in (has_g, has_f))
    pairs = (met_f * has_f[:, :, None]).sum(axis=(1, 3))[:, :, None] * (stops - starts)[:, None]
    furthest = int(abs(along).max()) + radius
    of_f_and_f2 = met_f @ _sums_within(f, starts, stops, furthest)
    of_g_and_g2 = met_g @ _sums_within(g, starts + step + radius, stops + step + radius, furthest + radius)
    found = np.empty((6, *pairs.shape))
    found[0] = pairs
    found[1:3], found[3:5] = of_g_and_g2.sum(axis=2), of_f_and_f2.sum(axis=2)
    found[5] = of_products.swapaxes(1, 2)
    return found


def _sums_within(lines: Array, first: NDArray[np.intp], stop: NDArray[np.intp], furthest: int) -> Array:
    """Sums of lines (n, 2, r, length) and of their squares from `first` to `stop` (n, steps), (2, n, 2, r, steps).

    What is beyond, within so many elements of either end as `furthest` says, is taken from sums over the whole lines.
    """
    count, _, _, length = lines.shape
    edge = min(furthest, length)
    # For the values and their squares, from either end on: images last, beside the places that are looked up.
    beyond = np.zeros((2, 2, *lines.shape[1:3], count, edge + 1))
    for end, part in enumerate((lines[..., :edge], lines[..., ::-1][..., :edge])):
        beyond[end, 0, ..., 1:] = part.transpose(1, 2, 0, 3)
    np.multiply(beyond[:, 0], beyond[:, 0], out=beyond[:, 1])
    beyond = beyond.cumsum(axis=-1)
    number = np.arange(count)[:, None]
    places = np.minimum(first, edge), np.minimum(length - stop, edge)
    out = sum(beyond[end][:, :, :, number, at] for end, at in enumerate(places))
    whole = np.stack([lines.sum(axis=3), np.einsum("nerx,nerx->ner", lines, lines)]).astype(np.float64)
    return (whole[..., None] - out.transpose(0, 3, 1, 2, 4)) * (stop > first)[:, None, None]


def _laid(
    images: Array,
    lines: NDArray[np.intp],
    axis: int,
    part: tuple[NDArray[np.intp], NDArray[np.intp]],
    to: NDArray[np.intp],
    length: int,
    dtype: np.dtype[np.floating],
) -> Array:
    """Rows or columns `lines` (n, 2, r) of images (1 or n, h, w), zero where there is none, (n, 2, r, length).

    Of each its elements from the first to the last of `part` (n, 1), moved on by so many as `to` says; zero elsewhere.
    """
    chosen = images.swapaxes(1, 2) if axis == 1 else images
    laid = np.zeros((*lines.shape, length), dtype)
    ends = (*(each[:, 0].tolist() for each in (*part, to)), lines[:, :, [0, -1]].tolist())
    for i, (first, stop, on, sides) in enumerate(zip(*ends, strict=True)):
        image = chosen[min(i, images.shape[0] - 1)]
        for side, (begin, end) in enumerate(sides):
            # Consecutive lines, upwards or downwards, as far as there are any.
            down, size = end < begin, image.shape[0]
            before = max(begin - size + 1 if down else -begin, 0)
            count = min(abs(end - begin) + 1, begin + 1 if down else size - begin) - before
            if count > 0:
                nearest = begin - before if down else begin + before
                there = slice(nearest, nearest - count if nearest >= count else None, -1)
                taken = image[there if down else slice(nearest, nearest + count), first:stop]
                laid[i, side, before : before + count, first + on : stop + on] = taken
    return laid
