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
from numpy.typing import NDArray

from xcorr_app.gpu.peaks.around_peak import scores_around_peaks
from xcorr_app.gpu.runtime.arrays import Array, is_device_array

_PIECE = 8192
"""Elements that stay in cache; longer products would also be split over threads by BLAS, which are busy already."""

_NO_VARIANCE = 1e-12
"""Variance of an overlap, as a share of the largest sum of squares around the peak, that may be rounding."""

SCORE_TOLERANCE = 1e-3
"""Largest accepted difference between an engine's normalised correlation and the definition's."""


def scores_by_definition(
    references: Array, frames: Array, peaks: NDArray[np.integer], min_overlap: float
) -> NDArray[np.float64]:
    """Zero-mean normalised correlation (n, 5, 5) at the shifts around peaks (n, 2), from its definition in float64.

    References (1 or n, h, w) and frames (n, h, w) are float64; NaN where the overlap is too small or has no variance.
    """
    rows, columns = frames.shape[1:]
    fewest = max(1, math.ceil(min_overlap * rows * columns))
    if is_device_array(frames):
        return scores_around_peaks(references, frames, peaks, fewest)
    last = references.shape[0] - 1
    sums = np.stack(
        [_sums_of(references[min(i, last)], frames[i], dy, dx) for i, (dy, dx) in enumerate(peaks.tolist())],
        axis=1,
    )
    f, ff, g, gg, products = sums
    (top, bottom), (first, end) = _overlap_ends(rows, peaks[:, 0]), _overlap_ends(columns, peaks[:, 1])
    n = ((bottom - top)[:, :, None] * (end - first)[:, None, :]).astype(np.float64)
    pairs = np.maximum(n, 1.0)
    of_left, of_right = ff - f * f / pairs, gg - g * g / pairs
    largest_left, largest_right = (squares.max(axis=(1, 2), keepdims=True) for squares in (ff, gg))
    vary = (of_left > _NO_VARIANCE * largest_left) & (of_right > _NO_VARIANCE * largest_right)
    valid = (n >= fewest) & vary
    variances = of_left * of_right
    scores: NDArray[np.float64] = np.where(
        valid, (products - f * g / pairs) / np.sqrt(np.where(valid, variances, 1.0)), np.nan
    )
    return scores


def _sums_of(left: NDArray[np.float64], right: NDArray[np.float64], dy: int, dx: int) -> NDArray[np.float64]:
    """Sums of left, its square, right, its square and the products at the 5 x 5 shifts around (dy, dx), first axis."""
    rows, columns = left.shape
    # Row y of `right` meets row y + dy + i - 2 of `left`, i = 0 .. 4; likewise along columns.
    tops, bottoms = _overlap_ends(rows, dy)
    firsts, lasts = _overlap_ends(columns, dx)
    of_left = _moments(
        left, tops + np.arange(dy - 2, dy + 3), bottoms - tops, firsts + np.arange(dx - 2, dx + 3), lasts - firsts
    )
    of_right = _moments(right, tops, bottoms - tops, firsts, lasts - firsts)
    return np.stack([*of_left, *of_right, _products_around(left, right, dy, dx)])


def _overlap_ends(size: int, shift: NDArray[np.integer] | int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First and one-past-last index into `right` of the overlap at ``shift - 2 .. shift + 2``, along a new axis."""
    shifts = np.add.outer(shift, np.arange(-2, 3))
    first = np.clip(-shifts, 0, size)
    return first, np.maximum(np.minimum(size, size - shifts), first)


def _moments(
    image: NDArray[np.float64],
    top: NDArray[np.intp],
    height: NDArray[np.intp],
    first: NDArray[np.intp],
    width: NDArray[np.intp],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums of an image and of its square over 5 x 5 rectangles, which differ by a few columns and rows only."""
    moments = np.zeros((2, 5, 5))
    common = max(int(first.max()), 0), int((first + width).min())
    middle = _by_row(image[:, common[0] : common[1]]) if common[1] > common[0] else None
    for j in range(5):
        start, stop = int(first[j]), int(first[j] + width[j])
        if middle is None:
            by_row = _by_row(image[:, start:stop])
        else:
            by_row = middle + _by_row(image[:, start : common[0]]) + _by_row(image[:, common[1] : stop])
        for i in range(5):
            if height[i] > 0 and width[j] > 0:
                moments[:, i, j] = by_row[:, top[i] : top[i] + height[i]].sum(axis=1)
    return moments[0], moments[1]


def _by_row(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of each row, and of its squares."""
    sums: NDArray[np.float64] = np.stack([values.sum(axis=1), np.einsum("ij,ij->i", values, values)])
    return sums


def _products_around(left: NDArray[np.float64], right: NDArray[np.float64], dy: int, dx: int) -> NDArray[np.float64]:
    """Sums of products at the 25 shifts around (dy, dx).

    A few rows at a time of both matrices are laid into rows with four spare zeros, those of the left one moved by the
    peak: every shift is then one offset into contiguous memory, which stays in the cache while all 25 pass over it, and
    terms outside either matrix are products with zero.
    """
    rows, columns = left.shape
    stride = columns + 4
    at_once = min(max(1, _PIECE // stride), rows)
    fixed, moved = np.zeros((at_once, stride)), np.zeros((at_once + 5, stride))
    length = fixed.size
    # Row y of `right` meets row y + dy + i of `left`, i = -2 .. 2; likewise along columns.
    first, last = max(0, dx - 2), min(columns, columns + dx + 2)
    sums = np.zeros((5, 5))
    if last <= first:
        return sums
    for start in range(0, rows, at_once):
        count = min(at_once, rows - start)
        fixed[:count, :columns], fixed[count:] = right[start : start + count], 0
        met = start + dy - 2
        top, bottom = min(max(met, 0), rows), max(min(met + at_once + 4, rows), 0)
        if bottom <= top:
            continue
        moved[: top - met], moved[bottom - met :] = 0, 0
        moved[top - met : bottom - met, first - dx + 2 : last - dx + 2] = left[top:bottom, first:last]
        for i in range(5):
            part = moved.ravel()[i * stride : i * stride + length + 4]
            sums[i] += np.correlate(part, fixed.ravel(), "valid")
    return sums
