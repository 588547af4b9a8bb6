"""Named banks: the properties they are defined by."""

from __future__ import annotations

import math

import numpy as np
import pytest
from skimage.filters import gabor_kernel

from xcorr_app import filter_bank
from xcorr_app.errors import ArgumentError, DeviceError
from xcorr_app.filtering.banks import gabor, gaussian_derivatives, leung_malik, schmid


@pytest.mark.parametrize("frequency", [0.1, 0.3])
@pytest.mark.parametrize("step", range(4))
def test_gabor_is_that_of_scikit_image_but_for_its_mean(frequency, step):
    bank = gabor([frequency], 4)
    even, odd = bank[2 * step], bank[2 * step + 1]
    theirs = gabor_kernel(frequency, theta=math.pi * step / 4, bandwidth=1, n_stds=8)
    cut = [(have - want) // 2 for have, want in zip(theirs.shape, even.shape, strict=True)]
    theirs = theirs[cut[0] : cut[0] + even.shape[0], cut[1] : cut[1] + even.shape[1]]
    np.testing.assert_allclose(odd, theirs.imag, atol=1e-12)
    window = np.abs(theirs)
    np.testing.assert_allclose(even, theirs.real - theirs.real.sum() / window.sum() * window, atol=1e-12)
    assert abs(even.sum()) < 1e-12


def test_gaussian_derivatives_differentiate_polynomials():
    y, x = np.mgrid[:60, :60] - 30.0
    a, b, c, d, e = 0.5, -1.25, 0.125, 0.75, -0.375
    image = a * x + b * y + c * x**2 + d * x * y + e * y**2
    for sigma in (0.5, 1, 3.3):
        found = filter_bank(image, gaussian_derivatives([sigma]))[:, 30, 30]
        np.testing.assert_allclose(found, [a, b, 2 * c, d, 2 * e], atol=1e-9)


@pytest.mark.parametrize(
    "call",
    [
        lambda: gabor([], 4),
        lambda: gabor([0.6], 4),
        lambda: gabor([0.1], 0),
        lambda: gabor([0.1], 4, bandwidth=0),
        lambda: gaussian_derivatives([]),
        lambda: gaussian_derivatives([0.4]),
    ],
)
def test_what_is_refused(call):
    with pytest.raises(ArgumentError):
        call()


def test_schmid_filters_are_those_of_their_formula():
    y, x = np.mgrid[-24:25, -24:25]
    r = np.sqrt(x**2.0 + y**2.0)
    pairs = [(2, 1), (4, 1), (4, 2), (6, 1), (6, 2), (6, 3), (8, 1), (8, 2), (8, 3), (10, 1), (10, 2), (10, 3), (10, 4)]
    for taps, (sigma, tau) in zip(schmid(), pairs, strict=True):
        wave = np.cos(np.pi * tau * r / sigma) * np.exp(-0.5 * (r / sigma) ** 2)
        wave -= wave.mean()
        np.testing.assert_allclose(taps, wave / np.abs(wave).sum(), atol=1e-15)


def test_leung_malik_filters_are_those_of_their_formulas():
    y, x = np.mgrid[-24:25, -24:25].astype(float)

    def normal(taps):
        taps = taps - taps.mean()
        return taps / np.abs(taps).sum()

    def bell(along, across, sigma):
        return np.exp(-0.5 * (along / (3 * sigma)) ** 2) * np.exp(-0.5 * (across / sigma) ** 2)

    widths = [2**0.5, 2.0, 8**0.5, 4.0]
    edges, bars, spots = [], [], []
    for sigma in widths[:3]:
        for degrees in range(0, 180, 30):
            cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
            along, across = cos * x + sin * y, cos * y - sin * x
            edges.append(normal(-across / sigma**2 * bell(along, across, sigma)))
            bars.append(normal((across**2 / sigma**4 - 1 / sigma**2) * bell(along, across, sigma)))
    square = x**2 + y**2
    for sigma in widths:
        gaussian = np.exp(-square / 2 / sigma**2)
        spots.append(gaussian / gaussian.sum())
        spots += [normal((square / s**4 - 2 / s**2) * np.exp(-square / 2 / s**2)) for s in (sigma, 3 * sigma)]
    np.testing.assert_allclose(leung_malik(), edges + bars + spots, atol=1e-14)


def test_kernels_of_banks_are_of_a_device(rng):
    image, bank = rng.normal(size=(9, 11)), rng.normal(size=(2, 3, 3))
    with pytest.raises((ArgumentError, DeviceError), match="runs on a GPU"):
        filter_bank(image, bank, method="implicit")
