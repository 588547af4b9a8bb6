"""Banks of filters against their definition, a float64 einsum over windows."""

import math

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from scipy import ndimage
from skimage.filters import gabor_kernel

import xcorr_app as xc
from tests.filtering.oracle import NUMPY_NAMES
from tests.pixels import pixels as noise
from xcorr_app import filter_bank
from xcorr_app.filtering.banks import gabor, gaussian_derivatives, leung_malik, schmid
from xcorr_app.filtering.boundary import MODES


def by_definition(images, bank, mode, cval=0.0):
    """(..., C_i, H, W) with (C_o, C_i, F_h, F_w)."""
    values = images.astype(np.float64)
    height, width = bank.shape[-2:]
    if mode != "valid":
        margins = [(0, 0)] * (values.ndim - 2) + [(size // 2, size - 1 - size // 2) for size in (height, width)]
        more = {"constant_values": cval} if mode == "constant" else {}
        values = np.pad(values, margins, NUMPY_NAMES[mode], **more)
    windows = sliding_window_view(values, (height, width), axis=(-2, -1))
    return np.einsum("...ryxuv,jruv->...jyx", windows, bank)


def agree(found, images, bank, mode, cval=0.0):
    expected = by_definition(images, bank, mode, cval)
    largest = np.abs(bank).sum(axis=(1, 2, 3)).max() * max(np.abs(images.astype(float)).max(), abs(cval))
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=(2e-7 if found.dtype == np.float32 else 1e-13) * largest)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [(1, 1), (3, 3), (2, 5), (7, 4), (11, 13), (16, 9)])
def test_every_mode_and_size(rng, mode, size):
    images, bank = noise(rng, (2, 3, 19, 23), "float64"), rng.normal(size=(4, 3, *size))
    agree(filter_bank(images, bank, mode=mode, cval=7), images, bank, mode, 7)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "float64"])
@pytest.mark.parametrize("size", [(5, 5), (15, 15)])
def test_every_type(rng, dtype, size):
    images, bank = noise(rng, (2, 33, 40), dtype), rng.normal(size=(3, 2, *size))
    found = filter_bank(images, bank)
    assert found.dtype == (np.float64 if dtype in ("int32", "uint32", "float64") else np.float32)
    agree(found, images, bank, "reflect")


def test_a_bank_without_channels_takes_every_image_by_itself(rng):
    images, bank = noise(rng, (2, 5, 12, 14), "float32"), rng.normal(size=(3, 5, 5))
    found = filter_bank(images, bank)
    assert found.shape == (2, 5, 3, 12, 14)
    agree(found, images[:, :, None], bank[:, None], "reflect")
    for j in range(3):
        np.testing.assert_array_equal(filter_bank(images[1, 2], bank)[j], found[1, 2, j])
    expected = ndimage.correlate(images[1, 2].astype(float), bank[0], mode="reflect")
    np.testing.assert_allclose(found[1, 2, 0], expected, atol=1e-3)


@pytest.mark.parametrize("size", [(3, 4), (12, 11)])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("mode", ["valid", "wrap", "nearest"])
def test_a_bad_value_stays_in_its_footprint(rng, size, bad, mode):
    images, bank = noise(rng, (2, 25, 30), "float32"), rng.normal(size=(3, 2, *size))
    images[1, 20, 3] = bad
    before = images.copy()
    found = filter_bank(images, bank, mode=mode)
    np.testing.assert_array_equal(images, before)
    clean = images.copy()
    clean[1, 20, 3] = 0
    reached = by_definition((~np.isfinite(images)).astype(float), np.ones_like(bank), mode) > 0
    assert reached.any()
    assert not reached.all()
    np.testing.assert_array_equal(np.isnan(found), reached)
    np.testing.assert_allclose(found[~reached], by_definition(clean, bank, mode)[~reached], atol=0.02)


@pytest.mark.parametrize("mode", ["reflect", "mirror", "wrap", "nearest", "constant"])
def test_images_smaller_than_the_filters(rng, mode):
    for shape in ((1, 1, 1), (1, 2, 31), (1, 5, 1)):
        images, bank = noise(rng, shape, "float64"), rng.normal(size=(2, 1, 13, 12))
        found = filter_bank(images, bank, mode=mode)
        for j in range(2):
            # ndimage and this function put the middle of even filters on the same element.
            expected = ndimage.correlate(images[0], bank[j, 0], mode=mode)
            np.testing.assert_allclose(found[j], expected, atol=1e-9)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("stride", [2, 5, 40])
def test_strided_banks_take_every_nth_output(rng, mode, stride):
    images, bank = noise(rng, (2, 3, 19, 23), "float64"), rng.normal(size=(4, 3, 4, 7))
    expected = by_definition(images, bank, mode, 7)[..., ::stride, ::stride]
    np.testing.assert_allclose(xc.filter_bank(images, bank, mode=mode, cval=7, stride=stride), expected, atol=1e-9)


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
