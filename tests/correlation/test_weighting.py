"""The weighting of frequencies: how noise is read off an autocorrelation, and the kernel made of it."""

from __future__ import annotations

import numpy as np
import pytest

from xcorr_app import cross_correlate
from xcorr_app.correlation.weighting import (
    LAGS,
    RADIUS,
    _scene_spectrum,
    autocorrelations,
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


def test_the_kernel_is_one_in_the_middle_and_looks_the_same_from_every_side():
    kernel = weighting_kernel(autocorrelation(0.5), autocorrelation(0.8))
    assert kernel.shape == (2 * RADIUS + 1, 2 * RADIUS + 1)
    assert kernel[RADIUS, RADIUS] == kernel.max() == 1.0
    for turned in (kernel[::-1], kernel[:, ::-1], kernel.T):
        np.testing.assert_allclose(turned, kernel, atol=1e-12)


def test_the_order_of_the_images_does_not_matter():
    one, two = autocorrelation(0.4), autocorrelation(0.7)
    np.testing.assert_array_equal(weighting_kernel(one, two), weighting_kernel(two, one))


def test_more_noise_is_smoothed_more():
    sums = [weighting_kernel(autocorrelation(s), autocorrelation(s)).sum() for s in (0.1, 0.5, 0.9)]
    assert sums[0] < sums[1] < sums[2]


def test_quiet_images_are_not_weighted():
    assert weighting_kernel(autocorrelation(0.01), autocorrelation(0.0)) is None
    assert weighting_kernel(autocorrelation(0.01), autocorrelation(0.0), quiet=0.005) is not None


def test_one_noisy_image_is_enough():
    assert weighting_kernel(autocorrelation(0.0), autocorrelation(0.5)) is not None
    assert weighting_kernel(autocorrelation(0.5), autocorrelation(0.0)) is not None


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


def test_smoothing_is_a_convolution_with_the_kernel(xp, rng):
    planes = rng.normal(size=(2, 2 * RADIUS + 7, 2 * RADIUS + 4))
    kernel = rng.normal(size=(2 * RADIUS + 1, 2 * RADIUS + 1))
    result = to_host(smooth(xp.asarray(planes), kernel))
    assert result.shape == (2, 7, 4)
    for i in range(7):
        for j in range(4):
            part = planes[:, i : i + 2 * RADIUS + 1, j : j + 2 * RADIUS + 1]
            np.testing.assert_allclose(result[:, i, j], (part * kernel[::-1, ::-1]).sum(axis=(1, 2)), atol=1e-9)


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


def test_noise_that_interpolation_has_smoothed_is_not_taken_for_a_scene():
    """Of a mean of moved frames only the share of noise is believed: the scene is that of the frames."""
    lags = np.arange(-LAGS, LAGS + 1)
    smoothed = np.exp(-(lags[:, None] ** 2 + lags[None, :] ** 2) / 2.0)
    mean = 0.6 * autocorrelation(0.1) + 0.4 * smoothed
    frame = autocorrelation(0.8)
    kernels = [weighting_kernel(left, frame, left_is_white=white) for left, white in ((mean, False), (mean, True))]
    # What is left of noise at lags of a pixel or two asks for high frequencies, which a kernel shows as a narrow peak.
    assert kernels[0][RADIUS, RADIUS + 1] > kernels[1][RADIUS, RADIUS + 1] + 0.05


@pytest.mark.parametrize("shape", [(40, 47), (300, 41)])
def test_autocorrelations(xp, shape):
    images = np.random.default_rng(0).normal(size=(3, *shape)).cumsum(axis=2)
    for many in (False, True):
        found = autocorrelations(xp.asarray(images), many=many)
        top = (shape[0] - 256) // 2 if many and shape[0] > 256 else 0
        for image, plane in zip(images, found, strict=True):
            part = image[top : top + 256] if top else image
            np.testing.assert_allclose(plane, cross_correlate(part, part, max_shift=LAGS), atol=1e-9)
