"""Shifts refined by re-weighted fits and by phases; means of others."""

import numpy as np
import pytest

from tests.registration.scenes import drifting
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


PLACES = np.array([(0, 0), (0.37, -0.21), (5.5, -3.49), (-8.12, 0.5), (2, 3), (-0.94, 7.75)])


@pytest.fixture(scope="module")
def speckle():
    """Fine texture: neighbouring pixels correlate to 0.6, and a polynomial through the peak is off by 0.01 px."""
    return drifting(PLACES, shape=(97, 110), width=0.12)


@pytest.mark.parametrize("dtype", [np.float32, np.uint16])
@pytest.mark.parametrize("reference", ["first", "last", 2, "previous", "template", "image"])
def test_every_reference(xp, speckle, reference, dtype):
    stack = (speckle * 1000 + 20000).astype(dtype)
    against = xp.asarray(stack[3]) if reference == "image" else reference
    result = estimate_shifts(xp.asarray(stack), against, 20, subpixel="phase", contrast="none", verify="all")
    # Frames that meet a blend of others are as good as its interpolation and edges.
    tolerance = 0.02 if reference == "template" else 1e-3
    np.testing.assert_allclose(result.shifts - result.shifts[0], -PLACES, atol=tolerance)
    # Without noise the highest frequencies weigh most, and pull by what windows of another start show of them.
    assert result.difference.max() < 3e-4
    assert result.flags == ((),) * len(PLACES)


@pytest.mark.parametrize("options", [{"roi": (slice(7, 90), slice(11, 100))}, {"prefilter": "gaussian:1"}])
def test_part_of_a_frame_and_filtered_frames(xp, speckle, options):
    result = estimate_shifts(xp.asarray(speckle), "first", 12, subpixel="phase", contrast="none", **options)
    np.testing.assert_allclose(result.shifts, -PLACES, atol=1e-3)


@pytest.mark.parametrize("deviation", [0.3, 1.0, 2.0])
def test_in_noise_it_is_as_good_as_the_plane_that_is_weighted(xp, deviation):
    places = np.random.default_rng(4).uniform(-6, 6, size=(12, 2))
    places[0] = 0
    stack = xp.asarray(drifting(places, shape=(160, 176), width=0.06, seed=8, noisy=deviation))
    results = [
        estimate_shifts(stack, "first", 12, subpixel=method, contrast="none") for method in ("gaussian", "phase")
    ]
    errors = [np.sqrt(np.mean((result.shifts + places)[1:] ** 2)) for result in results]
    assert errors[1] < 1.3 * errors[0]
    assert errors[1] < 2 * np.sqrt(np.mean(results[1].sigma[1:] ** 2))
