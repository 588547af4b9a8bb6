"""Banks of filters for texture, edges and orientation, as arrays (C_o, F, F) for `filter_bank`.

Angles are in radians, from the columns' axis towards the rows' (as the image is shown, clockwise); sizes in pixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import ArgumentError

Bank = npt.NDArray[np.float64]

SCHMID_SCALES = (
    (2, 1), (4, 1), (4, 2), (6, 1), (6, 2), (6, 3), (8, 1), (8, 2), (8, 3), (10, 1), (10, 2), (10, 3), (10, 4),
)  # fmt: skip
"""Pairs of width and number of cycles of the 13 filters."""
_SCHMID_SIZE = _LEUNG_MALIK_SIZE = 49
_REACH = 3.0
"""Standard deviations that a filter reaches from its middle."""


def gabor(frequencies: Sequence[float], orientations: int, *, bandwidth: float = 1.0) -> Bank:
    """Waves under a round Gaussian window, cosine and sine of every one.

    ``exp(-(x^2 + y^2) / (2 s^2)) * cos or sin(2 pi f (x cos a + y sin a)) / (2 pi s^2)``, the cosines made free of a
    constant by subtracting their mean under the window. The width s follows from the bandwidth, as in
    ``skimage.filters.gabor_kernel``.

    Source: J. G. Daugman, J. Opt. Soc. Am. A 2 (1985) 1160-1169, doi:10.1364/JOSAA.2.001160.

    Parameters
    ----------
    frequencies : sequence of float
        Cycles a pixel, above 0 and up to 0.5.
    orientations : int
        Number of angles, evenly over half a turn, beginning with 0.
    bandwidth : float
        In octaves.

    Returns
    -------
    (2 * len(frequencies) * orientations, F, F) array
        For each frequency and angle the cosine, then the sine.

    Raises
    ------
    ArgumentError
        For values out of range.

    Examples
    --------
    >>> gabor([0.25], 4).shape
    (8, 15, 15)
    """
    if not frequencies or not all(0 < frequency <= 0.5 for frequency in frequencies):
        raise ArgumentError(f"frequencies {tuple(frequencies)}: give some, above 0 and up to 0.5 cycles a pixel")
    if orientations < 1 or not 0 < bandwidth < math.inf:
        raise ArgumentError(f"orientations={orientations}, bandwidth={bandwidth}: both are above 0")
    factor = math.sqrt(math.log(2) / 2) / math.pi * (2**bandwidth + 1) / (2**bandwidth - 1)
    widths = [factor / frequency for frequency in frequencies]
    y, x = _grid(math.ceil(_REACH * max(widths)))
    bank = []
    for frequency, width in zip(frequencies, widths, strict=True):
        window = np.exp(-(x**2 + y**2) / (2 * width**2)) / (2 * math.pi * width**2)
        for step in range(orientations):
            angle = math.pi * step / orientations
            phase = 2 * math.pi * frequency * (x * math.cos(angle) + y * math.sin(angle))
            wave = np.cos(phase)
            bank += [window * (wave - (window * wave).sum() / window.sum()), window * np.sin(phase)]
    return np.stack(bank)


def gaussian_derivatives(sigmas: Sequence[float]) -> Bank:
    """First and second derivatives of Gaussians: steerable filters.

    Correlating with them gives the derivatives of the smoothed image, so that a ramp of slope 1 gives 1. The first
    derivative along any angle a is ``cos a * x + sin a * y`` of the first two answers; the second is
    ``cos^2 a * xx + 2 cos a sin a * xy + sin^2 a * yy``.

    Source: W. T. Freeman and E. H. Adelson, IEEE Trans. Pattern Anal. 13 (1991) 891-906, doi:10.1109/34.93808.

    Parameters
    ----------
    sigmas : sequence of float
        Widths, at least 0.5.

    Returns
    -------
    (5 * len(sigmas), F, F) array
        For each width the derivatives x, y, xx, xy, yy.

    Raises
    ------
    ArgumentError
        For widths out of range.

    Examples
    --------
    >>> gaussian_derivatives([1, 2]).shape
    (10, 17, 17)
    """
    if not sigmas or not all(0.5 <= sigma < math.inf for sigma in sigmas):
        raise ArgumentError(f"sigmas {tuple(sigmas)}: give some, at least 0.5 px each")
    radius = math.ceil((_REACH + 1) * max(sigmas))
    position = np.arange(-radius, radius + 1.0)
    bank = []
    for sigma in sigmas:
        window = np.exp(-(position**2) / (2 * sigma**2))
        # Each is exact for polynomials of its order, which sampled derivatives are not.
        smooth = window / window.sum()
        first = position * window / (position**2 * window).sum()
        bend = (position**2 - (position**2 * smooth).sum()) * window
        second = 2 * bend / (position**2 * bend).sum()
        rows_columns = ((smooth, first), (first, smooth), (smooth, second), (first, first), (second, smooth))
        bank += [np.outer(rows, columns) for rows, columns in rows_columns]
    return np.stack(bank)


def schmid() -> Bank:
    """The 13 rotationally symmetric filters of Schmid.

    ``cos(2 pi t r / (2 s)) * exp(-r^2 / (2 s^2))`` for the pairs (s, t) of `SCHMID_SCALES`, freed of its mean and
    divided by the sum of absolute values.

    Source: C. Schmid, "Constructing models for content-based image retrieval", CVPR 2001, vol. 2, 39-45,
    doi:10.1109/CVPR.2001.990922; sizes and normalisation as in M. Varma and A. Zisserman, Int. J. Comput. Vis. 62
    (2005) 61-81, doi:10.1007/s11263-005-4635-4.

    Returns
    -------
    (13, 49, 49) array
    """
    y, x = _grid(_SCHMID_SIZE // 2)
    r = np.hypot(x, y)
    return np.stack([_normalised(np.cos(math.pi * t * r / s) * np.exp(-(r**2) / (2 * s**2))) for s, t in SCHMID_SCALES])


def leung_malik() -> Bank:
    """The 48 filters of Leung and Malik: edges, bars, spots and blurs.

    First, then second derivatives of Gaussians three times as long as wide, at widths sqrt(2), 2 and 2 sqrt(2) and six
    angles; then at each width sqrt(2) to 4 a Gaussian, and the Laplacians of Gaussians of that width and of three times
    that width. All but the Gaussians are freed of their mean; all are divided by the sum of absolute values.

    Source: T. Leung and J. Malik, Int. J. Comput. Vis. 43 (2001) 29-44, doi:10.1023/A:1011126920638; widths (LM Large)
    and normalisation as in Varma and Zisserman (2005), see `schmid`.

    Returns
    -------
    (48, 49, 49) array
    """
    y, x = _grid(_LEUNG_MALIK_SIZE // 2)
    scales = [math.sqrt(2) ** power for power in range(1, 5)]
    edges, bars, spots = [], [], []
    for sigma in scales[:3]:
        for step in range(6):
            angle = math.pi * step / 6
            along = x * math.cos(angle) + y * math.sin(angle)
            across = y * math.cos(angle) - x * math.sin(angle)
            window = np.exp(-(along**2) / (2 * (3 * sigma) ** 2) - across**2 / (2 * sigma**2))
            edges.append(_normalised(-across * window))
            bars.append(_normalised((across**2 - sigma**2) * window))
    r2 = x**2 + y**2
    for sigma in scales:
        window = np.exp(-r2 / (2 * sigma**2))
        spots.append(window / window.sum())
        spots += [_normalised((r2 - 2 * s**2) * np.exp(-r2 / (2 * s**2))) for s in (sigma, 3 * sigma)]
    return np.stack(edges + bars + spots)


def _grid(radius: int) -> tuple[Bank, Bank]:
    """Rows and columns from the middle."""
    y, x = np.mgrid[-radius : radius + 1, -radius : radius + 1].astype(np.float64)
    return y, x


def _normalised(taps: Bank) -> Bank:
    taps = taps - taps.mean()
    normalised: Bank = taps / np.abs(taps).sum()
    return normalised
