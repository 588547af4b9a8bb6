"""`filter_bank` over device arrays against its definition in float64: modes, types, sizes, parts, little memory."""

from __future__ import annotations

import numpy as np
import pytest

from tests.device import NEEDS_DEVICE
from tests.filtering.test_filter_bank import by_definition, noise
from tests.gpu.test_memory import Allocator, allocations
from xcorr_app import filter_bank
from xcorr_app.decision import Decision
from xcorr_app.errors import DeviceMemoryError
from xcorr_app.filtering import bank_device
from xcorr_app.filtering.boundary import MODES

pytestmark = NEEDS_DEVICE


def keeps_the_bound(found, images, bank, mode, cval=0.0):
    """Float32 sums of n products: an error of at most n * 2^-24 of the sum of their sizes, and a few roundings."""
    found = found.get()
    expected = by_definition(images, bank, mode, cval)
    sizes = by_definition(np.abs(images.astype(float)), np.abs(bank), mode, abs(cval))
    assert found.shape == expected.shape
    bound = 1e-12 if found.dtype == np.float64 else (bank[0].size + 4) * 2.0**-24
    assert (np.abs(found - expected) <= bound * sizes).all()


@pytest.fixture(params=["im2win", "filters"])
def engine(request, monkeypatch):
    """All filters at once, as small images are, or one after the other, as only large ones would be."""
    bank_device._kept.cache_clear()
    if request.param == "filters":
        monkeypatch.setattr(bank_device, "decide_bank", lambda *_: Decision("filters"))
    yield request.param
    bank_device._kept.cache_clear()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [(1, 1), (3, 3), (2, 5), (7, 4), (16, 9)])
@pytest.mark.parametrize("channels", [1, 3])
def test_every_mode_and_size(cupy, rng, mode, size, channels):
    images, bank = noise(rng, (2, channels, 19, 23), "float32"), rng.normal(size=(21, channels, *size))
    keeps_the_bound(filter_bank(cupy.asarray(images), bank, mode=mode, cval=7), images, bank, mode, 7)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "float64"])
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("channels", [1, 2])
def test_every_type(cupy, rng, dtype, channels):
    images, bank = noise(rng, (2, channels, 33, 41), dtype), rng.normal(size=(5, channels, 5, 6))
    found = filter_bank(cupy.asarray(images), bank)
    assert isinstance(found, cupy.ndarray)
    assert found.dtype == (np.float64 if dtype in ("int32", "uint32", "float64") else np.float32)
    keeps_the_bound(found, images, bank, "reflect")


@pytest.mark.parametrize("size", [(1, 1, 1), (1, 2, 31), (1, 5, 1)])
def test_images_smaller_than_the_filters(cupy, rng, size):
    images, bank = noise(rng, size, "float32"), rng.normal(size=(15, 13, 12))
    for mode in ("reflect", "mirror", "wrap", "nearest", "constant"):
        keeps_the_bound(filter_bank(cupy.asarray(images), bank, mode=mode), images[:, None], bank[:, None], mode)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_value_stays_in_its_footprint(cupy, rng, bad):
    images, bank = noise(rng, (2, 25, 30), "float32"), rng.normal(size=(4, 3, 4))
    bank[1, 1, 2] = 0
    images[1, 20, 3] = bad
    found = filter_bank(cupy.asarray(images), bank).get()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(filter_bank(images, bank)))


def test_a_large_image_with_large_filters(cupy, rng):
    """4096^2 with 31 x 31: rows of the result here and there, against the definition."""
    image, bank = noise(rng, (4096, 4096), "uint8"), rng.normal(size=(32, 31, 31))
    found = filter_bank(cupy.asarray(image), bank)
    for row in (0, 7, 1234, 4095):
        first = min(max(row - 15, 0), 4096 - 46)
        part = image[None, None, first : first + 46, :200].astype(float)  # what the row's first 184 pixels are made of
        expected = by_definition(part, bank[:, None], "reflect")[0, :, row - first, :184]
        sizes = by_definition(part, np.abs(bank[:, None]), "reflect")[0, :, row - first, :184]
        assert (np.abs(found[:, row, :184].get() - expected) <= 961 * 2.0**-24 * sizes).all()


@pytest.mark.parametrize(("filters", "channels"), [(16, 2), (3, 1)])
def test_where_the_nth_allocation_fails(cupy, rng, filters, channels):
    images, bank = noise(rng, (5, channels, 40, 44), "float32"), rng.normal(size=(filters, channels, 5, 5))
    device = cupy.asarray(images)

    def maps():
        return filter_bank(device, bank)

    expected, count = maps(), allocations(cupy, maps)
    for n in range(1, count + 1):
        with cupy.cuda.using_allocator(Allocator(cupy, lambda call, n=n: call == n)):
            found = maps()
        np.testing.assert_allclose(found.get(), expected.get(), rtol=0, atol=1e-2, err_msg=f"{n} of {count}")
    for n in range(2, count + 1):  # the result fits, little else does: the host computes
        with cupy.cuda.using_allocator(Allocator(cupy, lambda call, n=n: call >= n)):
            found = maps()
        keeps_the_bound(found, images, bank, "reflect")
    with (
        cupy.cuda.using_allocator(Allocator(cupy, lambda call: True)),
        pytest.raises(DeviceMemoryError, match=r"GB of device memory are free.*--device cpu"),
    ):
        maps()
