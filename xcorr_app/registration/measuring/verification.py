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

_PIECE = 2048
"""Pixels of either image that stay in the cache."""

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
    last = references.shape[0] - 1
    products_of = _Products((rows, columns))
    sums = np.stack(
        [
            _sums_of(references[min(i, last)], frames[i], dy, dx, products_of)
            for i, (dy, dx) in enumerate(peaks.tolist())
        ],
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


def _sums_of(
    left: NDArray[np.float64], right: NDArray[np.float64], dy: int, dx: int, products_of: _Products
) -> NDArray[np.float64]:
    """Sums of left, its square, right, its square and the products at the 5 x 5 shifts around (dy, dx), first axis."""
    rows, columns = left.shape
    # Row y of `right` pairs with row y + dy + i - 2 of `left`, i = 0 .. 4; likewise along columns.
    tops, bottoms = _overlap_ends(rows, dy)
    firsts, lasts = _overlap_ends(columns, dx)
    of_left = _moments(
        left, tops + np.arange(dy - 2, dy + 3), bottoms - tops, firsts + np.arange(dx - 2, dx + 3), lasts - firsts
    )
    of_right = _moments(right, tops, bottoms - tops, firsts, lasts - firsts)
    return np.stack([*of_left, *of_right, products_of(left, right, dy, dx)])


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
    there = width > 0
    if not there.any():
        return np.zeros((5, 5)), np.zeros((5, 5))
    end = first + width
    inner, low, high = first[there].max(), first[there].min(), end[there].max()
    outer = max(end[there].min(), inner)
    common, place = image[:, inner:outer], np.r_[low:inner, outer:high]
    edges, at = image[:, place], place[:, None]
    of_columns = ((at >= first) & (at < end)).astype(np.float64)
    row = np.arange(image.shape[0])
    of_rows = ((row >= top[:, None]) & (row < (top + height)[:, None])).astype(np.float64)
    sums, squares = (
        of_rows @ (_dots(common, other)[:, None] * there + of_edges @ of_columns)
        for other, of_edges in ((np.ones(outer - inner), edges), (common, edges * edges))
    )
    return sums, squares


def _dots(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Products of rows (..., n, w) with rows, each by itself: BLAS splits longer ones over threads, which are busy."""
    products: NDArray[np.float64] = np.matmul(one[..., None, :], other[..., None])[..., 0, 0]
    return products


class _Products:
    """Sums of products of two images at the 25 shifts around a peak, image after image in the same memory.

    The left image is laid into zeros, moved by the peak, and the right one into rows as long: every shift is then one
    offset into the former, and terms outside either image are products with zero. All 25 shifts pass over a few
    pixels of both before the next ones, which stay in the cache.
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        rows, columns = self._shape = shape
        pitch = columns + 4
        pieces = -(-rows * pitch // _PIECE)
        self._moved = np.zeros(pieces * _PIECE + 4 * pitch + 4)
        self._fixed = np.zeros(pieces * _PIECE)
        self._left = self._moved[: (rows + 4) * pitch].reshape(rows + 4, pitch)
        self._right = self._fixed[: rows * pitch].reshape(rows, pitch)[:, :columns]
        size = self._moved.itemsize
        self._shifted = as_strided(
            self._moved, (pieces, 5, 5, _PIECE), (_PIECE * size, pitch * size, size, size), writeable=False
        )

    def __call__(self, left: NDArray[np.float64], right: NDArray[np.float64], dy: int, dx: int) -> NDArray[np.float64]:
        """Sums (5, 5) for left and right (h, w) around the shift (dy, dx)."""
        rows, columns = self._shape
        # Row y of `right` pairs with row y + dy + i of `left`, i = -2 .. 2; likewise along columns.
        first, last = max(0, dx - 2), min(columns, columns + dx + 2)
        top, bottom = max(0, dy - 2), min(rows, rows + dy + 2)
        if last <= first or bottom <= top:
            return np.zeros((5, 5))
        self._left[:] = 0
        self._left[top - dy + 2 : bottom - dy + 2, first - dx + 2 : last - dx + 2] = left[top:bottom, first:last]
        self._right[:] = right
        sums: NDArray[np.float64] = _dots(self._shifted, self._fixed.reshape(-1, 1, 1, _PIECE)).sum(axis=0)
        return sums
