"""Standard errors are as large as errors are."""

from __future__ import annotations

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts
from xcorr_app.errors import ArgumentError


def errors(snr, seeds, shape=(128, 144), width=0.05, **options):
    """Errors and standard errors of single frames against a reference as noisy, (seeds, 2) each."""
    found, sigma = [], []
    for seed in range(seeds):
        drift = np.array([(0, 0), np.random.default_rng(seed).uniform(-6, 6, 2)])
        clean = drifting(drift, shape=shape, width=width, seed=seed)
        result = estimate_shifts(clean + noise(clean, 1 / snr, seed + 1), "first", 10, contrast="none", **options)
        found.append((result.shifts + drift)[1])
        sigma.append(result.sigma[1])
    return np.array(found), np.array(sigma)


@pytest.mark.parametrize("snr", [5.0, 1.0, 0.3])
def test_errors_are_as_large_as_their_standard_errors_say(snr):
    error, sigma = errors(snr, 60)
    ratio = np.abs(error / sigma)
    assert np.mean(ratio < 1) == pytest.approx(0.68, abs=0.12)
    assert np.mean(ratio < 2) > 0.89


def test_noise_that_is_stronger_where_the_scene_is_bright_counts_as_such(rng):
    ratios = []
    for seed in range(40):
        drift = np.array([(0, 0), rng.uniform(-4, 4, 2)])
        scene = np.exp(1.2 * drifting(drift, shape=(128, 128), seed=seed))
        result = estimate_shifts(rng.poisson(20 * scene).astype(np.uint16), "first", 8, contrast="none")
        ratios.append((result.shifts + drift)[1] / result.sigma[1])
    assert 0.5 < np.mean(np.abs(ratios) < 1) < 0.85


def test_a_frame_is_sure_to_lie_on_itself(xp):
    clean = drifting([(0, 0), (3, 1)], shape=(128, 128))
    result = estimate_shifts(xp.asarray(clean + noise(clean, 0.5)), "first", 8)
    assert result.sigma[0].max() < 0.005 < result.sigma[1].min()


@pytest.mark.parametrize("reference", ["mean", "template", "previous"])
def test_every_reference_has_standard_errors(reference):
    drift = np.array([(0, 0), (0.5, 0.2), (1, 0.4), (1.4, 0.8)])
    clean = drifting(drift, shape=(96, 96))
    result = estimate_shifts(clean + noise(clean, 0.3), reference, 6)
    assert np.isfinite(result.sigma).all()
    assert (result.sigma < 0.1).all()
    if reference == "previous":
        assert (np.diff(result.sigma, axis=0) >= 0).all()


def test_images_of_too_few_tiles_have_none():
    result = estimate_shifts(drifting([(0, 0), (1, 1)], shape=(24, 24)), "first", 4)
    assert np.isnan(result.sigma).all()
    assert "uncertain" not in result.flags[1]


def test_shifts_less_certain_than_asked_for_are_flagged():
    clean = drifting([(0, 0), (3, 1)], shape=(128, 128))
    stack = clean + noise(clean, 2.0)
    sigma = estimate_shifts(stack, "first", 8).sigma[1].max()
    for limit, flagged in ((0.9 * sigma, True), (1.1 * sigma, False)):
        assert ("uncertain" in estimate_shifts(stack, "first", 8, max_sigma=limit).flags[1]) == flagged
    with pytest.raises(ArgumentError, match="max_sigma"):
        estimate_shifts(stack, "first", 8, max_sigma=0)
