"""The weighting of frequencies: how noise is read off an autocorrelation, and the kernel made of it."""

from __future__ import annotations

import numpy as np
import pytest

from xcorr_app import cross_correlate
from xcorr_app.correlation.weighting import (
    LAGS,
    RADIUS,
    _scene_spectrum,
    noise_share,
    smooth,
    weighting_kernel,
)
from xcorr_app.gpu.runtime.arrays import to_host


def autocorrelation(share, width=4.0):
    """A smooth scene of Gaussian autocorrelation in white noise that makes up `share` of the variance."""
    lags = np.arange(-LAGS, LAGS + 1)
    scene = (1 - share) * np.exp(-(lags[:, None] ** 2 + lags[None, :] ** 2) / (2 * width**2))
    scene[LAGS, LAGS] += share
    return scene


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("width", [2.5, 4.0, 8.0])
def test_share_of_noise(share, width):
    assert noise_share(autocorrelation(share, width)) == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.2, 0.6)])
def test_the_kernel_is_that_of_hannan_and_thomson(shares):
    """S / (S (Nl + Nr) + Nl Nr), the noise being counted in units of the scene's variance."""
    power = _scene_spectrum(autocorrelation(0.0), 0.0)
    left, right = (share / (1 - share) for share in shares)
    weight = power / (power * (left + right) + left * right)
    lags = np.arange(-RADIUS, RADIUS + 1)
    waves = np.exp(2j * np.pi * np.outer(lags, np.arange(64)) / 64)
    expected = (waves @ weight @ waves.T).real * np.outer(*(np.cos(np.pi * lags / (2 * RADIUS + 2)) ** 2,) * 2)
    found = weighting_kernel(*(autocorrelation(share) for share in shares))
    np.testing.assert_allclose(found, expected / expected[RADIUS, RADIUS], atol=0.02)


def test_unknown_autocorrelations_are_not_weighted():
    unknown = np.full_like(autocorrelation(0.5), np.nan)
    assert weighting_kernel(unknown, autocorrelation(0.5)) is None
    assert weighting_kernel(autocorrelation(0.5), unknown) is None


def test_invalid_shifts_stay_invalid_and_spread_nowhere(xp, rng):
    planes = rng.normal(size=(1, 2 * RADIUS + 6, 2 * RADIUS + 6))
    planes[0, RADIUS + 2, RADIUS + 3] = np.nan
    kernel = weighting_kernel(autocorrelation(0.5), autocorrelation(0.5))
    result = to_host(smooth(xp.asarray(planes), kernel))
    assert np.argwhere(np.isnan(result[0])).tolist() == [[2, 3]]


def test_the_kernel_never_turns_a_plane_upside_down():
    # Of images that are nothing but noise no scene is known: what is left of the autocorrelation is chance.
    for seed in range(30):
        image = np.random.default_rng(seed).normal(size=(64, 64))
        chance = cross_correlate(image, image, max_shift=LAGS)
        kernel = weighting_kernel(chance, chance)
        if kernel is not None:
            assert kernel[RADIUS, RADIUS] > 0
            assert np.abs(kernel).max() < 10
