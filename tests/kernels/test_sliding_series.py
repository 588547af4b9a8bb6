"""Cosine series, the recursion and the start tables in NumPy, against the taps of scipy.ndimage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from xcorr_app.errors import ArgumentError
from xcorr_app.filtering.boundary import source_indices
from xcorr_app.gpu.stencil.cosine_series import (
    MIN_RADIUS,
    TOLERANCE,
    box_series,
    gaussian_series,
    source_rows,
    start_table,
)
from xcorr_app.gpu.stencil.sliding import SLIDING_BOUNDARIES, series_argument

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


def test_a_window_that_no_series_is_made_for_is_refused():
    assert gaussian_series(1.9).radius == MIN_RADIUS
    with pytest.raises(ArgumentError, match="with the taps themselves"):
        gaussian_series(1.8)
    with pytest.raises(ArgumentError, match="truncate at 4 to 5"):
        gaussian_series(20.0, 9.0)
    for sigma in (-3.0, np.nan, np.inf):
        with pytest.raises(ArgumentError, match="positive numbers"):
            gaussian_series(sigma)
    for size in (0, 4):
        with pytest.raises(ArgumentError, match="odd number"):
            box_series(size)


@pytest.mark.parametrize("boundary", SLIDING_BOUNDARIES)
@pytest.mark.parametrize("length", [1, 2, 3, 7, 40])
def test_rows_outside_are_those_of_the_boundary(boundary, length):
    positions = np.arange(-100, length + 100)
    found = source_rows(positions, length, boundary)
    mode = "nearest" if boundary == "constant" else boundary
    np.testing.assert_array_equal(found, source_indices(length, 100, 100, mode))


@pytest.mark.parametrize("boundary", SLIDING_BOUNDARIES)
@pytest.mark.parametrize(("sigma", "length", "rows"), [(4.0, 70, 32), (10.0, 64, 64), (9.0, 20, 32), (30.0, 1, 32)])
def test_start_tables_make_the_first_sums_of_every_segment(boundary, sigma, length, rows):
    """Of the window at its first row, term by term, and one row before; outside is 0.7 for boundary constant."""
    rng = np.random.default_rng(length)
    series, column = gaussian_series(sigma), rng.random(length)
    table = start_table(series, length, rows, boundary)
    assert len(table.first) == -(-length // rows)
    assert table.weights.shape[1] % 32 == 0

    def sums_at(row):
        offsets = np.arange(-series.radius, series.radius + 1)
        positions = row + offsets
        values = column[source_rows(positions, length, boundary)]
        if boundary == "constant":
            values[(positions < 0) | (positions >= length)] = 0.7
        return values @ (series.amplitudes * np.cos(np.multiply.outer(offsets, series.angles)))

    for segment, first in enumerate(table.first):
        here = column[first : first + table.weights.shape[1]]
        assert not table.weights[segment, len(here) :].any()
        found = here @ table.weights[segment, : len(here)] + 0.7 * table.outside[segment]
        now, before = sums_at(segment * rows), sums_at(segment * rows - 1)
        np.testing.assert_allclose(found, np.concatenate([now, now - before]), rtol=0, atol=1e-13)


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
