"""Normalisation of the plain sums, the same for every engine.

Zero-mean normalised cross-correlation over the true overlap of each shift (Lewis 1995; Padfield 2012,
doi 10.1109/TIP.2011.2181402, without masks)::

    (Sfg - Sf*Sg/n) / sqrt((Sff - Sf**2/n) * (Sgg - Sg**2/n))

from the plain sum ``Sfg`` and the overlap sums of f, f**2, g, g**2 and the number n of pairs.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from xcorr_app.correlation.overlap import OverlapSums, overlap_counts
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.runtime.arrays import Array

Overlaps: TypeAlias = tuple[Array, Array]
"""Sums and centred sums of squares over the overlap at every shift, each (..., ny, nx)."""

# Variance left in an overlap, relative to that of the whole image, below which rounding would decide the score.
_RELATIVE_VARIANCE = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-10}
_RELATIVE_TO_SQUARES = 1e-14
"""The same for integers, whose sums are exact, relative to the sum of squares with the mean in it."""

_LEAST_CLEAN = 0.02
"""Share of an image's variance that is taken for the scene at least."""
_TINY = 1e-300


def least_overlap(left_shape: tuple[int, int], right_shape: tuple[int, int], min_overlap: float) -> int:
    """Fewest overlapping pairs at which a shift scores: a fraction of the largest possible overlap, at least one."""
    largest = min(left_shape[0], right_shape[0]) * min(left_shape[1], right_shape[1])
    return max(1, math.ceil(min_overlap * largest))


class ZNCC:
    """Turns plain sums into zero-mean normalised cross-correlation for fixed shapes and a fixed window.

    The matrices given to it should have zero mean (the result does not change, the rounding does); integers are taken
    as they are, in double precision.

    Parameters
    ----------
    left_shape, right_shape : tuple of int
    window : ShiftWindow
    min_overlap : float
        Shifts whose overlap is a smaller fraction of the largest possible overlap score NaN.
    xp : module
        numpy or cupy.
    """

    def __init__(
        self,
        left_shape: tuple[int, int],
        right_shape: tuple[int, int],
        window: ShiftWindow,
        min_overlap: float,
        xp: Any,
    ) -> None:
        self._xp = xp
        self._sums = OverlapSums(left_shape, right_shape, window)
        counts = overlap_counts(left_shape, right_shape, window)
        self.too_small = xp.asarray(counts < least_overlap(left_shape, right_shape, min_overlap))
        self._counts = xp.asarray(np.maximum(counts, 1.0))
        self._largest = tuple(int(i) for i in np.unravel_index(counts.argmax(), counts.shape))

    def left(self, matrices: Array) -> Overlaps:
        """Return overlap sums and centred sums of squares of left matrices (..., H, W), to be reused."""
        values = _as_floats(matrices)
        return self._centred(values, *self._sums.of_left(values), _least_variance(matrices.dtype))

    def right(self, matrices: Array) -> Overlaps:
        """Return overlap sums and centred sums of squares of right matrices (..., H', W')."""
        values = _as_floats(matrices)
        return self._centred(values, *self._sums.of_right(values), _least_variance(matrices.dtype))

    def __call__(self, sums: Array, left: Overlaps, right: Overlaps) -> Array:
        """Return scores in [-1, 1] as float64, shape of `sums`; NaN where the overlap is too small or constant."""
        (left_sum, left_variance), (right_sum, right_variance) = left, right
        covariance = sums - left_sum * right_sum / self._counts
        product = left_variance * right_variance
        invalid = self.too_small | (product <= 0)
        score = covariance / self._xp.sqrt(self._xp.where(invalid, 1.0, product))
        return self._xp.where(invalid, np.nan, self._xp.clip(score, -1.0, 1.0))

    def of_clean(self, scores: Array, overlaps: tuple[Overlaps, Overlaps], clean: tuple[Array, Array]) -> Array:
        """Return scores over the root of the variance that is not white noise, relative to that at the largest overlap.

        Noise adds to the variance of every overlap alike, but a bright spot that enters at its edge adds to the
        products as well as to the variance. So scores of noisy images rise towards overlaps of much variance, which
        shifts their peak by as much as the noise does; divided by the clean variance they do not.

        Parameters
        ----------
        scores : ndarray, shape (n, ny, nx)
        overlaps : (Overlaps, Overlaps)
            Of the left matrices, which may be one for all, and of the right.
        clean : (ndarray, ndarray)
            Fraction (n) of the variance of each matrix that is not white noise.
        """
        factor: Any = 1.0
        for (_, squares), share in zip(overlaps, clean, strict=True):
            share = self._xp.maximum(share, _LEAST_CLEAN)[:, None, None]
            squares = squares.reshape(-1, *squares.shape[-2:])
            variance = squares / self._counts
            variance /= squares[:, *self._largest][:, None, None] / self._counts[self._largest] + _TINY
            # The noise must not take all of it, whatever its estimate is off by.
            rest = self._xp.maximum(variance - (1.0 - share), 0.5 * _LEAST_CLEAN * variance + _TINY)
            variance *= share
            factor = factor * (variance / rest)
        return scores * self._xp.sqrt(factor)

    def without_means(self, sums: Array, left: Overlaps, right: Overlaps, means: tuple[Array, Array]) -> Array:
        """Return what plain sums would be had every matrix lost its mean before; `means` broadcast to `sums`."""
        of_left, of_right = means
        return sums - of_left * right[0] - of_right * left[0] + self._counts * of_left * of_right

    def _centred(self, matrices: Array, sums: Array, squares: Array, least: float) -> Overlaps:
        variance = squares - sums * sums / self._counts
        whole = self._xp.einsum("...ij,...ij->...", matrices, matrices)[..., None, None]
        variance[variance <= least * whole] = 0.0
        return sums, variance


def _least_variance(dtype: np.dtype[Any]) -> float:
    return _RELATIVE_VARIANCE[dtype] if dtype.kind == "f" else _RELATIVE_TO_SQUARES


def _as_floats(matrices: Array) -> Array:
    return matrices if matrices.dtype.kind == "f" else matrices.astype(np.float64)
