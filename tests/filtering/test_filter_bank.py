"""Banks of filters against their definition, a float64 einsum over windows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from scipy import ndimage

from xcorr_app import filter_bank
from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.filtering.boundary import MODES

NUMPY_MODES = {"reflect": "symmetric", "mirror": "reflect", "nearest": "edge", "wrap": "wrap", "constant": "constant"}


def by_definition(images, bank, mode, cval=0.0):
    """(..., C_i, H, W) with (C_o, C_i, F_h, F_w)."""
    values = images.astype(np.float64)
    height, width = bank.shape[-2:]
    if mode != "valid":
        margins = [(0, 0)] * (values.ndim - 2) + [(size // 2, size - 1 - size // 2) for size in (height, width)]
        more = {"constant_values": cval} if mode == "constant" else {}
        values = np.pad(values, margins, NUMPY_MODES[mode], **more)
    windows = sliding_window_view(values, (height, width), axis=(-2, -1))
    return np.einsum("...ryxuv,jruv->...jyx", windows, bank)


def noise(rng, shape, dtype):
    if np.dtype(dtype).kind == "f":
        return rng.normal(0, 100, shape).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


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


@pytest.mark.parametrize(
    ("shape", "bank", "options", "error", "words"),
    [
        ((8, 8), np.ones((2, 3, 3, 3)), {}, ShapeError, r"takes \(..., 3, H, W\)"),
        ((2, 8, 8), np.ones((2, 3, 3, 3)), {}, ShapeError, "takes"),
        ((8,), np.ones((2, 3, 3)), {}, ShapeError, r"takes \(..., H, W\)"),
        ((0, 8), np.ones((2, 3, 3)), {}, ShapeError, "takes"),
        ((8, 8), np.ones((3, 3)), {}, ShapeError, "bank has shape"),
        ((8, 8), np.ones((1, 9, 3)), {"mode": "valid"}, ShapeError, "do not fit"),
        ((8, 8), np.full((1, 3, 3), np.nan), {}, ArgumentError, "not finite"),
        ((8, 8), [["x"]], {}, ArgumentError, "array of numbers"),
        ((8, 8), np.ones((1, 3, 3)), {"mode": "edge"}, ArgumentError, "take one of reflect"),
        ((8, 8), np.ones((1, 3, 3)), {"cval": np.nan}, ArgumentError, "finite"),
    ],
)
def test_what_is_refused(shape, bank, options, error, words):
    with pytest.raises(error, match=words):
        filter_bank(np.ones(shape), bank, **options)


def test_types_that_are_refused():
    for images in ([[1]], np.ones((4, 4), complex)):
        with pytest.raises(DataTypeError, match="NumPy or CuPy array"):
            filter_bank(images, np.ones((1, 1, 1)))
