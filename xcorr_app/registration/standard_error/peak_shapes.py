"""Shapes of peaks, and the standard errors of shifts that follow: ``standard_error/uncertainty.py``."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.subpixel import MIN_LOGARITHM
from xcorr_app.registration.columns import Columns

_STEADY = 20.0
"""Significance from which a peak's own curvature is steady enough."""
_MIN_PEAKS = 4
"""Peaks of a stack whose median shape is better than the shape of one that is noisy."""
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
    refined: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 2)))
    """(T, 2) standard errors in pixels of shifts that were found by phase ramps; NaN of all others."""

    def __post_init__(self) -> None:
        if len(self.refined) != len(self.height):
            self.refined = np.full((len(self.height), 2), np.nan)

    @classmethod
    def empty(cls, count: int) -> PeakShapes:
        """Nothing known yet."""
        sizes = (count, 2, 2), (count, 2, 2), (count,), (count, 2)
        return cls(*(np.full(size, np.nan) for size in sizes))

    def standard_errors(self, significance: NDArray[np.float64]) -> NDArray[np.float64]:
        """(T, 2) in pixels; infinite where a peak is none.

        Frames of one stack have peaks of one shape. Where peaks hardly stand out (`significance` (T,)), their own
        curvatures are mostly noise, and the median of the stack takes their place.
        """
        hessian = self.hessian
        positive, is_peak = self.height > 0, _is_peak(hessian)
        good = positive & is_peak
        if np.count_nonzero(good) >= _MIN_PEAKS:
            with np.errstate(invalid="ignore"):
                noisy = positive & (significance < _STEADY)
            if noisy.any() and _is_peak(typical := median_of(hessian[good] / self.height[good][:, None, None]))[0]:
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
        refined = np.isfinite(self.refined)
        if refined.any():
            sigma = np.where(refined, self.refined, sigma)
        if is_peak.all() and np.isfinite(sigma).all():
            return np.asarray(sigma)
        is_peak = (is_peak & ~(np.isinf(p) | np.isinf(q) | np.isinf(r))) | refined.all(axis=1)
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
        if len(quartic) >= _MIN_PEAKS:
            quartic = median_of(quartic)
        # Noise of a frame on itself is a spike: of a few peaks the smoothest is taken.
        return np.asarray(_OF_QUARTIC * np.abs(quartic).min(axis=0, initial=_SHARPEST))


def median_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
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


def narrowness_of(around: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) reciprocals of the standard deviations of peaks in pixels, from 5 x 5 values; NaN where it is none.

    By values two pixels away: halfway between two pixels a narrow peak is flat among its neighbours.
    """
    height = around[:, 2, 2]
    falls = 4 * height - (around[:, 0, 2] + around[:, 4, 2] + around[:, 2, 0] + around[:, 2, 4])
    with np.errstate(invalid="ignore", divide="ignore"):
        narrowness: NDArray[np.float64] = np.sqrt(np.where(height > 0, falls / (8 * height), np.nan))
    return narrowness


def quartic_of(around: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 2) fourth over second derivative of the logarithm of 5 x 5 values; NaN where there is none."""
    lines = np.stack([around[:, :, 2], around[:, 2]], axis=1).astype(np.float64)
    with np.errstate(invalid="ignore"):
        usable = (lines > MIN_LOGARITHM * lines[:, :, 2:3]).all(axis=2) & (lines[:, :, 2] > 0)
    logarithm = np.log(np.where(usable[:, :, None], lines, 1.0))
    bend = logarithm @ _SECOND
    usable &= bend < 0
    return np.where(usable, logarithm @ _FOURTH / np.where(usable, bend, 1.0), np.nan)
