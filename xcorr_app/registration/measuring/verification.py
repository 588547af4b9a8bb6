"""Checks of a measured shift by other means than the engine that measured it.

Every verified frame is measured again by a float64 zero-padded FFT with the same window, normalisation and
sub-pixel method. That is no check of an FFT engine's own theory, nor of what all engines share, so the normalised
correlation of the 5 x 5 shifts around the peak is also recomputed from its definition in float64, by the code of
this file alone (on a device by a kernel that nothing else uses), and compared with the engine's values: at least the
nearest 3 x 3 must be there.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from xcorr_app.gpu.peaks.around_peak import started_scores
from xcorr_app.gpu.runtime.arrays import Array, is_device_array

_STEPS = np.arange(-2, 3)
"""Shifts that are looked at beside a peak, along an axis."""
_ROWS = 4
"""Of the right image that meet rows of the left one together."""
_MARGIN = 4
"""Around the left image: shifts that are looked at beyond a peak, and elements that lie beyond at that peak already."""

_NO_VARIANCE = 1e-12
"""Variance of an overlap, as a share of the largest sum of squares around the peak, that may be rounding."""

SCORE_TOLERANCE = 1e-3
"""Largest accepted difference between an engine's normalised correlation and the definition's."""


def scores_by_definition(references: Array, frames: Array, peaks: NDArray[np.integer], min_overlap: float) -> Array:
    """Zero-mean normalised correlation (n, 5, 5) at the shifts around peaks (n, 2), from its definition in float64.

    References (1 or n, h, w) and frames (n, h, w) are float64; NaN where the overlap is too small or has no variance.
    The scores are where the frames are; on a device nothing has been waited for.
    """
    rows, columns = frames.shape[1:]
    fewest = max(1, math.ceil(min_overlap * rows * columns))
    if is_device_array(frames):
        return started_scores(references, frames, peaks, fewest)
    sums = np.empty((5, frames.shape[0], 5, 5))
    padded = np.zeros((rows + 2 * _MARGIN, columns + 2 * _MARGIN))
    shared = references.shape[0] == 1
    # Rectangles of the left image are where those of the right one are, moved by the shift.
    ends = [_overlap_ends(size, along) for size, along in zip((rows, columns), peaks.T, strict=True)]
    of_right = [(start, stop - start) for start, stop in ends]
    of_left = [(start + along[:, None] + _STEPS, size) for (start, size), along in zip(of_right, peaks.T, strict=True)]
    if shared:
        sums[:2] = _moments(references[0], *of_left[0], *of_left[1])
    for i, (dy, dx) in enumerate(peaks.tolist()):
        one = slice(i, i + 1)
        if not shared:
            sums[:2, one] = _moments(references[i], *(each[one] for along in of_left for each in along))
        if i == 0 or not shared:
            padded[_MARGIN:-_MARGIN, _MARGIN:-_MARGIN] = references[0 if shared else i]
        sums[2:4, one] = _moments(frames[i], *(each[one] for along in of_right for each in along))
        sums[4, i] = _products(padded, frames[i], dy, dx)
    f, ff, g, gg, products = sums
    n = (of_right[0][1][:, :, None] * of_right[1][1][:, None, :]).astype(np.float64)
    pairs = np.maximum(n, 1.0)
    varies_left, varies_right = ff - f * f / pairs, gg - g * g / pairs
    largest_left, largest_right = (squares.max(axis=(1, 2), keepdims=True) for squares in (ff, gg))
    vary = (varies_left > _NO_VARIANCE * largest_left) & (varies_right > _NO_VARIANCE * largest_right)
    valid = (n >= fewest) & vary
    variances = varies_left * varies_right
    scores: NDArray[np.float64] = np.where(
        valid, (products - f * g / pairs) / np.sqrt(np.where(valid, variances, 1.0)), np.nan
    )
    return scores


def _overlap_ends(size: int, shift: NDArray[np.integer]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First and one-past-last index into `right` of the overlap at ``shift - 2 .. shift + 2``, along a new axis."""
    shifts = np.add.outer(shift, _STEPS)
    first = np.clip(-shifts, 0, size)
    return first, np.maximum(np.minimum(size, size - shifts), first)


def _moments(
    image: NDArray[np.float64],
    top: NDArray[np.intp],
    height: NDArray[np.intp],
    first: NDArray[np.intp],
    width: NDArray[np.intp],
) -> NDArray[np.float64]:
    """Sums of an image and of its square (2, n, 5, 5) over n times 5 x 5 rectangles, their ends (n, 5) along each axis.

    They differ by some columns and rows only.
    """
    there = width > 0
    if not there.any():
        return np.zeros((2, *top.shape, 5))
    end = first + width
    inner, low, high = first[there].max(), first[there].min(), end[there].max()
    outer = max(end[there].min(), inner)
    common, place = image[:, inner:outer], np.r_[low:inner, outer:high]
    edges, at = image[:, place], place[:, None]
    of_columns = ((at >= first[:, None]) & (at < end[:, None])).astype(np.float64)
    row = np.arange(image.shape[0])
    of_rows = ((row >= top[..., None]) & (row < (top + height)[..., None])).astype(np.float64)
    sums, squares = (
        of_rows @ (_dots(common, other)[:, None] * there[:, None] + of_edges @ of_columns)
        for other, of_edges in ((np.ones(outer - inner), edges), (common, edges * edges))
    )
    return np.stack([sums, squares])


def _dots(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Products of rows (..., n, w) with rows, each by itself: BLAS splits longer ones over threads, which are busy."""
    products: NDArray[np.float64] = np.matmul(one[..., None, :], other[..., None])[..., 0, 0]
    return products


def _products(padded: NDArray[np.float64], right: NDArray[np.float64], dy: int, dx: int) -> NDArray[np.float64]:
    """Sums of products (5, 5) of a left image laid into a margin of zeros and right (h, w) around the shift (dy, dx).

    A few rows of the right image meet four more of the left one: every row with every row, of which those count that
    lie on each other, is a product of matrices, and reads either image less often than row by row.
    """
    rows, columns = right.shape
    # Row y of `right` pairs with row y + dy + i - 2 of left, i = 0 .. 4; likewise along columns.
    top, bottom = max(0, -dy - 2), min(rows, rows - dy + 2)
    first, last = max(0, -dx - 2), min(columns, columns - dx + 2)
    sums = np.zeros((5, 5))
    if last <= first or bottom <= top:
        return sums
    right, left = right[top:bottom, first:last], padded[top + dy + _MARGIN - 2 :, first + dx + _MARGIN - 2 :]
    whole = right.shape[0] - right.shape[0] % _ROWS
    for start, stop, height in ((0, whole, _ROWS), (whole, right.shape[0], right.shape[0] - whole)):
        if stop > start:
            ours = right[start:stop].reshape(-1, 1, height, last - first)
            down, across = left.strides
            theirs = as_strided(
                left[start:],
                (ours.shape[0], 5, height + 4, last - first),
                (height * down, across, down, across),
                writeable=False,
            )
            met = (theirs @ ours.swapaxes(2, 3)).sum(axis=0)
            row = np.arange(height)
            sums += met[:, row + np.arange(5)[:, None], row].sum(axis=2).T
    return sums
