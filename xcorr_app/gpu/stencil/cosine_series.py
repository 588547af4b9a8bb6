"""Long windows as short cosine series: what the sliding sums of ``kernels/stencil/sliding.cu`` are made from.

A window of 2 R + 1 taps is ``sum over k of amplitude_k * cos(angle_k * x)`` for ``|x| <= R`` and ends there, as
SciPy's Gaussians do. Sugimoto and Kamata (2013, doi 10.1109/ICIP.2013.6738106) take multiples of one frequency whose
period is the window: a Gaussian that ends at 4 sigma has a kink there, and eight terms leave an error of 3e-5. The
recursion asks nothing of the angles, so here each is fitted as the amplitudes are: five terms leave 7e-7, six 5e-9.
The fit begins where Caratheodory's theorem leads: from its values at 0, 1, .. 2 K steps of R / (2 K) a Gaussian is a
sum of K cosines, but for a constant at 0; their angles are the roots of the eigenvector that belongs to the least
eigenvalue of the Toeplitz matrix of these values (Beylkin and Monzon, 2005, doi 10.1016/j.acha.2005.01.003). A few
Gauss-Newton steps follow.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import ArgumentError

Vector = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

TOLERANCE = 2e-6
"""Most that a series may differ from the taps, summed over the window: what a result can be off along one axis, where
the largest magnitude in the image is one."""

EXACT_TOLERANCE = 2e-8
"""The same for results that are 16-bit integers: a thousandth of a pixel's unit."""

MIN_RADIUS = 8
"""Shorter windows need fewer multiplications tap by tap than term by term."""

MAX_TERMS = 8
"""Terms whose sums fit into registers."""

_STEPS = 8
"""Gauss-Newton steps after which the angles change no more."""

_FITTED_AT = 256
"""Most offsets at which the angles are fitted; the amplitudes are fitted at all."""

_PADDED_ROWS = 32
"""A start table has a multiple of so many rows."""


@dataclass(frozen=True, eq=False)
class CosineSeries:
    """Taps from ``-radius`` to ``radius`` as a sum of cosines; they sum to one.

    Attributes
    ----------
    radius : int
        In pixels.
    angles, amplitudes : (terms,) array
        Radians per pixel; and factors.
    error : float
        Sum of the magnitudes of the differences from the taps that were asked for: with images between -1 and 1 no
        result differs by more, rounding apart.
    """

    radius: int
    angles: Vector
    amplitudes: Vector
    error: float

    @property
    def terms(self) -> int:
        """Number of cosines."""
        return len(self.angles)

    @property
    def taps(self) -> Vector:
        """The window, ``(2 * radius + 1,)``."""
        return np.asarray(self.weights(np.arange(-self.radius, self.radius + 1)).sum(axis=1))

    def weights(self, offsets: Indices) -> Vector:
        """Return every term's part of the taps at some offsets, zero outside the window: ``(offsets, terms)``."""
        inside = np.abs(offsets) <= self.radius
        return np.asarray(inside[:, None] * self.amplitudes * np.cos(np.multiply.outer(offsets, self.angles)))


@dataclass(frozen=True, eq=False)
class StartTable:
    """Weights of an image's rows in the sums of the first row of every segment, the boundary folded in.

    Attributes
    ----------
    first : (segments,) array of int32
        Image row that the first row of a segment's weights belongs to.
    weights : (segments, rows, 2 * terms) array
        Of the sums, then of their steps (sum less the sum one row before); ``rows`` is a multiple of 32, and those
        beyond the window hold zeros.
    outside : (segments, 2 * terms) array
        What the outside weighs, for boundary ``constant``.
    """

    first: npt.NDArray[np.int32]
    weights: Vector
    outside: Vector


def gaussian_radius(sigma: float) -> int:
    """Return the radius at which `scipy.ndimage.gaussian_filter` ends, in pixels."""
    return int(4 * sigma + 0.5)


@functools.lru_cache(maxsize=64)
def gaussian_series(sigma: float, tolerance: float = TOLERANCE) -> CosineSeries:
    """Fit the fewest cosines to the taps of `scipy.ndimage.gaussian_filter`.

    Examples
    --------
    >>> series = gaussian_series(64.0)
    >>> series.radius, series.terms, series.error < 1e-6
    (256, 5, True)
    """
    radius = gaussian_radius(sigma)
    if radius < MIN_RADIUS:
        raise ArgumentError(f"sigma {sigma} is for the taps themselves: sliding sums reach {MIN_RADIUS} pixels or more")
    offsets = np.arange(-radius, radius + 1)
    taps = np.exp(-0.5 * (offsets / sigma) ** 2)
    taps /= taps.sum()
    for terms in range(1, MAX_TERMS + 1):
        best = min(
            (_with_amplitudes(taps, radius, angles) for angles in _candidates(taps, radius, sigma, terms)),
            key=lambda series: series.error,
        )
        if best.error <= tolerance:
            return best
    raise ArgumentError(f"{MAX_TERMS} cosines leave an error of {best.error:.1e} of sigma {sigma}")


def source_rows(positions: Indices, length: int, boundary: str) -> Indices:
    """Return the rows that stand for positions outside an image, as ``source_index`` of ``filter.cuh`` does."""
    if boundary == "wrap":
        return np.asarray(positions % length)
    if boundary in ("nearest", "constant"):
        return np.asarray(np.clip(positions, 0, length - 1))
    twice = int(boundary == "mirror")
    period = max(1, 2 * (length - twice))
    folded = positions % period
    return np.asarray(np.where(folded < length, folded, period - 1 + twice - folded))


def start_table(series: CosineSeries, length: int, segment_rows: int, boundary: str) -> StartTable:
    """Fold the boundary into the weights of the first sums of every segment of a column."""
    offsets = np.arange(-series.radius - 1, series.radius + 1)
    sums = series.weights(offsets)
    both = np.concatenate([sums, sums - series.weights(offsets + 1)], axis=1)
    spans, outsides = [], []
    for start in range(0, length, segment_rows):
        positions = start + offsets
        outside = (positions < 0) | (positions >= length)
        constant = outside if boundary == "constant" else np.zeros_like(outside)
        rows = source_rows(positions[~constant], length, boundary)
        lowest = int(rows.min())
        span = np.zeros((int(rows.max()) - lowest + 1, both.shape[1]))
        np.add.at(span, rows - lowest, both[~constant])
        spans.append((lowest, span))
        outsides.append(both[constant].sum(axis=0))
    most = max(len(span) for _, span in spans)
    weights = np.zeros((len(spans), -(-most // _PADDED_ROWS) * _PADDED_ROWS, both.shape[1]))
    for segment, (_, span) in zip(weights, spans, strict=True):
        segment[: len(span)] = span
    return StartTable(np.array([lowest for lowest, _ in spans], np.int32), weights, np.array(outsides))


def _candidates(taps: Vector, radius: int, sigma: float, terms: int) -> Iterator[Vector]:
    """Yield angles, each a Gauss-Newton step after those before: not every step betters a fit that is near its best."""
    values = np.exp(-0.5 * (np.arange(2 * terms + 1) * radius / (2 * terms * sigma)) ** 2)
    steps = np.arange(2 * terms + 1)
    least = np.linalg.eigh(values[np.abs(np.subtract.outer(steps, steps))])[1][:, 0]
    roots = np.angle(np.roots(least))
    angles = np.sort(roots[roots > 0])[:terms] * (2 * terms / radius)
    offsets = np.unique(np.linspace(0, radius, _FITTED_AT).round())
    half = taps[radius + offsets.astype(np.int64)]
    share = _shares(offsets)
    yield angles
    for _ in range(_STEPS):
        phases = np.multiply.outer(offsets, angles)
        cosines = np.cos(phases) * share[:, None]
        amplitudes = np.linalg.lstsq(cosines, half * share, rcond=None)[0]
        slopes = -np.sin(phases) * amplitudes * (offsets * share / radius)[:, None]
        both = np.concatenate([cosines, slopes], axis=1)
        step = np.linalg.lstsq(both, half * share - cosines @ amplitudes, rcond=1e-14)[0]
        angles = np.abs(angles + step[len(angles) :] / radius)
        yield angles


def _with_amplitudes(taps: Vector, radius: int, angles: Vector) -> CosineSeries:
    """Fit by least squares, then scale to the sum of one, so that a flat image stays as it is."""
    # A frequency that float32 holds exactly: the recursion then turns by the very angle that it begins and ends with.
    squares = (4 * np.sin(angles / 2) ** 2).astype(np.float32).astype(np.float64)
    angles = np.asarray(2 * np.arcsin(np.sqrt(squares) / 2), np.float64)
    offsets = np.arange(radius + 1)
    cosines, share = np.cos(np.multiply.outer(offsets, angles)), _shares(offsets)
    half = taps[radius:]
    amplitudes = np.linalg.lstsq(cosines * share[:, None], half * share, rcond=None)[0]
    fitted = cosines @ amplitudes
    scale = 2 * fitted.sum() - fitted[0]
    difference = np.abs(fitted / scale - half)
    return CosineSeries(
        radius, angles, np.asarray(amplitudes / scale, np.float64), float(2 * difference.sum() - difference[0])
    )


def _shares(offsets: npt.NDArray[Any]) -> Vector:
    """Weights of one half of a symmetric window: the middle occurs once."""
    return np.where(offsets == 0, np.sqrt(0.5), 1.0)
