"""Cosine series, the recursion and the start tables in NumPy, against the taps of scipy.ndimage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from xcorr_app.gpu.stencil.cosine_series import (
    TOLERANCE,
    gaussian_series,
)
from xcorr_app.gpu.stencil.sliding import series_argument

SIGMAS = (2.0, 3.3, 8.0, 16.0, 64.0, 250.0)


def taps_of_scipy(sigma, radius):
    """What a single bright pixel becomes."""
    bright = np.zeros(2 * radius + 1)
    bright[radius] = 1
    return ndimage.gaussian_filter1d(bright, sigma, mode="constant")


@pytest.mark.parametrize("sigma", SIGMAS)
def test_a_series_is_the_gaussian_of_scipy_and_says_how_exactly(sigma):
    series = gaussian_series(sigma)
    expected = taps_of_scipy(sigma, series.radius)
    error = np.abs(series.taps - expected).sum()
    assert error <= TOLERANCE
    assert error == pytest.approx(series.error, rel=1e-6, abs=1e-12)
    assert series.taps.sum() == pytest.approx(1, abs=1e-13)
    assert series.terms == 5
    assert (np.diff(series.angles) > 0).all()


@pytest.mark.parametrize("sigma", [3.3, 64.0, 250.0])
def test_the_recursion_stays_exact_over_thousands_of_rows(sigma):
    """Sums in float64, in the very constants that the kernel gets: the series' error is all that is left."""
    series, rng = gaussian_series(sigma), np.random.default_rng(7)
    radius, length = series.radius, 5000
    column = rng.random(length + 2 * radius + 2)
    constants = series_argument(series, 0.0)
    turn, edge, inner = (constants[name] for name in ("turn", "edge", "inner"))
    weights = series.weights(np.arange(-radius, radius + 1))
    before, now = column[: 2 * radius + 1] @ weights, column[1 : 2 * radius + 2] @ weights
    found = np.empty(length)
    for row in range(length):
        found[row] = now.sum()
        if row + 1 == length:
            break
        above, leaving, below, entering = column[[row, row + 1, row + 2 * radius + 1, row + 2 * radius + 2]]
        after = turn * now - before + edge * (entering + above) + inner * (below + leaving)
        before, now = now, after
    exact = np.convolve(column, series.taps, "valid")[1 : length + 1]
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-10)
    expected = np.convolve(column, taps_of_scipy(sigma, radius), "valid")[1 : length + 1]
    np.testing.assert_allclose(found, expected, rtol=0, atol=series.error + 1e-10)
