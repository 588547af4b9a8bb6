"""The kernels that standardise images, on the host, against the array operations that define it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.host_device import guards_are_whole
from tests.kernels.in_the_place_of_cupy import run_on_host
from xcorr_app.correlation import standardize as standardizing
from xcorr_app.correlation.standardize import flat_images, standardize
from xcorr_app.gpu.peaks import standard_values
from xcorr_app.gpu.peaks.standard_values import READ


def images_of(rng, dtype, shape):
    images = 100 + 25 * rng.normal(size=shape)
    images = (np.rint(images) if np.dtype(dtype).kind != "f" else images - 100).astype(dtype)
    images[-1] = images[-1, 0, 0]  # flat
    images[0, -1, -1] = 3
    return images


@pytest.mark.parametrize("shape", [(1, 9, 7), (5, 33, 67), (3, 61, 301), (2, 129, 193)])
@pytest.mark.parametrize("dtype", sorted(READ))
@pytest.mark.parametrize("written", ["float32", "float64"])
def test_as_array_operations_say(host_builds, rng, monkeypatch, shape, dtype, written):
    images = images_of(rng, dtype, shape)
    expected, flat = standardize(images, written), flat_images(images)
    run_on_host(monkeypatch, host_builds, standard_values)
    monkeypatch.setattr(standardizing, "is_device_array", lambda _: True)
    found = standardize(images, written)
    assert found.values.dtype == written
    assert guards_are_whole(found.values)
    tolerance = 1e-6 if written == "float32" else 1e-14
    np.testing.assert_allclose(found.values, expected.values, atol=tolerance)
    np.testing.assert_array_equal(found.flat, expected.flat)
    np.testing.assert_array_equal(flat_images(images), flat)
    assert flat[-1] == (len(images) > 1)


@pytest.mark.parametrize("magnitude", [1e30, 1e-30])
def test_magnitudes_far_from_one(host_builds, rng, monkeypatch, magnitude):
    images = (magnitude * (4 + rng.normal(size=(2, 31, 47)))).astype(np.float32)
    run_on_host(monkeypatch, host_builds, standard_values)
    monkeypatch.setattr(standardizing, "is_device_array", lambda _: True)
    exact = images.astype(np.float64) - images.mean(axis=(1, 2), keepdims=True, dtype=np.float64)
    exact /= np.abs(exact).max(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(standardize(images, np.float32).values, exact, atol=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize("place", [None, (0, 0, 0), (1, 60, 96), (2, 0, 1)])
def test_values_that_are_not_finite_are_found(host_builds, rng, monkeypatch, value, place):
    images = rng.normal(size=(3, 61, 97)).astype(np.float32)
    if place is not None:
        images[place] = value
    run_on_host(monkeypatch, host_builds, standard_values)
    assert standard_values.all_finite(images) == np.isfinite(images).all()
