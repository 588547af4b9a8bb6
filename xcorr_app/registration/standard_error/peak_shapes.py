"""Shapes of peaks, and the standard errors of shifts that follow: ``standard_error/uncertainty.py``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.subpixel import MIN_LOGARITHM
from xcorr_app.registration.columns import Columns
from xcorr_app.registration.standard_error.significance import DEVIATION

_MIN_PEAKS = 4
"""Peaks of a stack whose median shape is better than the shape of one that is noisy."""
_STEADY = 20.0
"""Significance from which a peak's own curvature is steady enough."""
_OF_MANY = 2 / 3
"""Of the variance v of a logarithm, by which the median of many is taken for less: log d / (d - 2) of Student's
distribution for one, less 2 / 3 d by which the median of chi squared lies below its mean."""
_OF_QUARTIC = 0.00966
"""Root mean square of d (4 d^2 + 4 e^2 - 1) / 12 for d, e between -1/2 and 1/2."""
_FOURTH = np.array([1.0, -4.0, 6.0, -4.0, 1.0])
_SECOND = np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / 12
_SHARPEST = 2.4
"""Fourth over second derivative of a peak of a single pixel."""


@dataclass
class PeakShapes(Columns):
    """What standard errors follow from, one entry a frame; NaN where not known."""

    scatter: NDArray[np.float64]
    """(T, 2, 2) covariance of the slope of the correlation at its peak."""
    hessian: NDArray[np.float64]
    """(T, 2, 2) of the peak."""
    height: NDArray[np.float64]
    """(T,) of the peak, in the units of the Hessian."""
    quartic: NDArray[np.float64]
    """(T, 2) fourth over second derivative of the logarithm of the plane at its peak, per square pixel."""
    freedom: NDArray[np.float64]
    """(T,) degrees of freedom of the scatter."""
    refined: NDArray[np.float64]
    """(T, 2) standard errors in pixels of shifts that were found by phase ramps; NaN of all others."""

    @classmethod
    def empty(cls, count: int) -> PeakShapes:
        """Nothing known yet."""
        sizes = (count, 2, 2), (count, 2, 2), (count,), (count, 2), (count,), (count, 2)
        return cls(*(np.full(size, np.nan) for size in sizes))

    def standard_errors(self, significance: NDArray[np.float64]) -> NDArray[np.float64]:
        """(T, 2) in pixels; infinite where a peak is none.

        Where peaks hardly stand out (`significance` (T,)), their own curvatures are mostly noise, and the median shape
        of those of the stack takes their place.
        """
        hessian, height, (a, b, _, c) = self.hessian, self.height[:, None, None], self.hessian.reshape(-1, 4).T
        with np.errstate(invalid="ignore"):
            good, noisy = (self.height > 0) & (a < 0) & (a * c > b * b), significance < _STEADY
        if np.count_nonzero(good) >= _MIN_PEAKS:
            noisy &= (self.height > 0) & np.isfinite(a + b + c)
            hessian = np.where(noisy[:, None, None], median_of((hessian / height)[good]) * height, hessian)
        a, b, _, c = hessian.reshape(-1, 4).T
        p, q, _, r = self.scatter.reshape(-1, 4).T
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            # The diagonal of H^-1 S H^-1.
            determinant = a * c - b * b
            of_rows, of_columns = c * c * p - 2 * b * c * q + b * b * r, b * b * p - 2 * a * b * q + a * a * r
            variance = np.stack([of_rows, of_columns], axis=1) / (determinant * determinant)[:, None]
            sigma = np.sqrt(_pooled(variance, self.freedom) + self._interpolation_error() ** 2)
            is_none = (a >= 0) | (determinant <= 0) | np.isinf(self.scatter).any(axis=(1, 2))
        sigma[is_none] = np.inf
        return np.where(np.isfinite(self.refined), self.refined, sigma)

    def _interpolation_error(self) -> NDArray[np.float64]:
        """(2,) root mean square error in pixels of the Gaussian through 3 x 3 values of the plane.

        Of a peak whose logarithm has the derivatives -a and q of second and fourth order, alike in all directions, the
        fit is off by ``q / a * d (4 d^2 + 4 e^2 - 1) / 12``, d and e being the place of the peak between whole shifts.
        """
        # A sum is not finite where one of the two is not, and made several times as fast as `all` of them.
        quartic = self.quartic[np.isfinite(self.quartic[:, 0] + self.quartic[:, 1])]
        if len(quartic) >= _MIN_PEAKS:
            quartic = median_of(quartic)
        # Noise of a frame on itself is a spike: of a few peaks the smoothest is taken.
        return np.asarray(_OF_QUARTIC * np.abs(quartic).min(axis=0, initial=_SHARPEST))


def _pooled(variance: NDArray[np.float64], freedom: NDArray[np.float64]) -> NDArray[np.float64]:
    """Variances (T, 2) of shifts, as far as those of frames of one stack are known to differ from their median.

    That of few tiles is itself uncertain: its logarithm scatters by the variance v = 2 / d + 2 / d^2 of d degrees of
    freedom. What frames differ by is kept by the share t / (t + v), with t what the logarithms of all scatter by beyond
    v, or what those of a frame say alone, if that is more (shrunk variances of Smyth 2004, doi 10.2202/1544-6115.1027,
    where one frame that is out of focus does not count for the others, nor they for it).
    """
    known = np.isfinite(variance).all(axis=1) & (variance > 0).all(axis=1) & (freedom > 0)
    if np.count_nonzero(known) < _MIN_PEAKS:
        return variance
    logarithm, unsure = np.log(variance[known]), (2 / freedom + 2 / freedom**2)[known, None]
    # The median of the distribution of chi squared lies below the mean; what many frames say together need not be
    # wider for Student's distribution, as that of one alone is.
    apart = logarithm - median_of(logarithm - _OF_MANY * unsure)
    spread = (DEVIATION * median_of(np.abs(apart))) ** 2
    beyond = np.maximum(np.maximum(spread, apart**2) - unsure, 0.0)
    pooled = variance.copy()
    pooled[known] = np.exp(logarithm - apart * unsure / (beyond + unsure))
    return pooled


def median_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Median (1, ...) of finite values (n, ...): what NumPy's own does around it takes several times as long."""
    middle = (len(values) - 1) // 2, len(values) // 2
    ordered = np.partition(values.reshape(len(values), -1).T, middle, axis=1)
    return np.asarray((ordered[:, middle[0]] + ordered[:, middle[1]]) / 2).reshape(1, *values.shape[1:])


def narrowness_of(around: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) reciprocals of the standard deviations of peaks in pixels, from 5 x 5 values; NaN where it is none.

    By values two pixels away: halfway between two pixels a narrow peak is flat among its neighbours.
    """
    height = around[:, 2, 2]
    falls = 4 * height - (around[:, 0, 2] + around[:, 4, 2] + around[:, 2, 0] + around[:, 2, 4])
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.sqrt(np.where(height > 0, falls / (8 * height), np.nan)))


def quartic_of(around: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 2) fourth over second derivative of the logarithm of 5 x 5 values; NaN where there is none."""
    lines = np.stack([around[:, :, 2], around[:, 2]], axis=1).astype(np.float64)
    with np.errstate(invalid="ignore"):
        usable = (lines > MIN_LOGARITHM * lines[:, :, 2:3]).all(axis=2) & (lines[:, :, 2] > 0)
    logarithm = np.log(np.where(usable[:, :, None], lines, 1.0))
    bend = logarithm @ _SECOND
    usable &= bend < 0
    return np.where(usable, logarithm @ _FOURTH / np.where(usable, bend, 1.0), np.nan)
