"""Spots that come and go: what differs loses its weight, what is left is fitted as well as if nothing differed."""

import numpy as np
import pytest

from xcorr_app import estimate_shifts
from xcorr_app.registration.measuring.reweighted_fit import fit_reweighted, note

SHAPE = (261, 283)
DRIFT = np.random.default_rng(77).uniform(-5, 5, (6, 2))
DRIFT[0] = 0


def blinking(rng, share, photons=400.0, widths=(2.5, 3.5)):
    """Spots that blink independently, with Poisson noise; float32 (T, *SHAPE)."""
    count = 180
    y, x = (rng.uniform(-12, size + 12, count) for size in SHAPE)
    width, height = rng.uniform(*widths, count), photons * rng.uniform(0.5, 1.5, count)
    blinks = rng.random(count) < share
    stack = []
    for dy, dx in DRIFT:
        lit = height * ~(blinks & (rng.random(count) < 0.5))
        of_rows = np.exp(-0.5 * ((np.arange(SHAPE[0])[:, None] - y - dy) / width) ** 2)
        of_columns = np.exp(-0.5 * ((np.arange(SHAPE[1])[:, None] - x - dx) / width) ** 2)
        stack.append(rng.poisson(20 + (of_rows * lit) @ of_columns.T))
    return np.array(stack, dtype=np.float32)


def rms(shifts):
    return float(np.sqrt(np.mean((shifts + DRIFT)[1:] ** 2)))


def fitted(xp, stack, kernel=None):
    stack = xp.asarray(stack)
    start = -DRIFT + np.random.default_rng(5).normal(0, 0.03, DRIFT.shape)
    return fit_reweighted(stack[:1], stack, start, kernel)


def test_spots_that_come_and_go_hardly_matter(xp):
    errors = [rms(fitted(xp, blinking(np.random.default_rng(8), share)).shift) for share in (0.0, 0.3)]
    assert errors[0] < 0.01
    assert errors[1] < 2 * errors[0]


@pytest.mark.share(2)
@pytest.mark.parametrize("photons", [400.0, 40.0])
def test_standard_errors_are_those_of_the_shifts(photons):
    ratios = []
    for seed in range(6):
        fit = fitted(np, blinking(np.random.default_rng(seed), 0.3, photons))
        ratios.append(((fit.shift + DRIFT) / fit.sigma)[1:])
    within = np.mean(np.abs(ratios) < 1)
    assert 0.5 < within < 0.85


def test_where_nothing_can_be_fitted_nothing_is_said(rng):
    noise = rng.normal(size=(3, *SHAPE)).astype(np.float32)
    bars = np.broadcast_to(np.sin(np.arange(SHAPE[1]) / 7), (1, *SHAPE)).astype(np.float32)
    assert np.isnan(fit_reweighted(noise[:1], noise[1:], np.array([(0, 0), (np.nan, 0)]), None).shift[1]).all()
    assert np.isnan(fit_reweighted(bars, bars, np.array([(0, 400.0)]), None).shift).all()
    assert np.isnan(fit_reweighted(bars, bars, np.zeros((1, 2)), None).shift).all()


def test_a_series_that_blinks_is_measured_so_and_says_so():
    stack = blinking(np.random.default_rng(21), 0.3)
    result = estimate_shifts(stack, max_shift=12, verify="all")
    assert result.trusted.all()
    assert note(np.ones(len(stack), dtype=bool)) in result.notes
    assert np.nanmax(result.difference) < 0.05
    integer = estimate_shifts(stack, max_shift=12, subpixel="none")
    np.testing.assert_array_equal(integer.shifts, np.rint(integer.shifts))
    quadratic = estimate_shifts(stack, max_shift=12, subpixel="quadratic")
    assert rms(result.shifts) < 0.5 * rms(quadratic.shifts)


def test_a_series_that_does_not_blink_is_not():
    result = estimate_shifts(blinking(np.random.default_rng(21), 0.0), max_shift=12)
    assert not any("come and go" in note for note in result.notes)
