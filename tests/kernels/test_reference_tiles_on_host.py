"""The kernel behind the slopes of references, on the host, against the array operations that define it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.host_device import guards_are_whole
from tests.kernels.in_the_place_of_cupy import run_on_host
from xcorr_app.gpu.peaks import noise_sums, reference_tiles, row_sums
from xcorr_app.registration.quality import NOISE_PERIOD, _mean_products, clean_of
from xcorr_app.registration.standard_error import reference_slopes
from xcorr_app.registration.standard_error.reference_slopes import ReferenceSlopes


@pytest.mark.parametrize("shape", [(61, 97), (233, 50), (387, 41)])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("uneven", [False, True])
def test_slopes_and_their_products(host_builds, rng, monkeypatch, shape, count, weighted, uneven):
    kernel = np.outer(*(2 * [np.exp(-(np.arange(-12.0, 13) ** 2) / 9)])) if weighted else None
    images = (0.3 + 0.2 * rng.normal(size=(count, *shape))).astype(np.float32)
    if uneven:
        images[:, 8:20] *= 9
    clean = rng.uniform(0.3, 0.9, count)
    # In double precision, which the kernel's sums have.
    expected = ReferenceSlopes(images.astype(np.float64), kernel, clean)
    run_on_host(monkeypatch, host_builds, row_sums, noise_sums, reference_tiles)
    monkeypatch.setattr(reference_tiles, "null_pointer", lambda: np.zeros(0, np.float32))
    monkeypatch.setattr(reference_slopes, "is_device_array", lambda _: True)
    found = ReferenceSlopes(images, kernel, clean)
    looked_for = ReferenceSlopes(images, None).clean
    np.testing.assert_allclose(looked_for, clean_of(_mean_products(images.astype(np.float64), NOISE_PERIOD)), rtol=1e-5)
    assert found.tiles == expected.tiles
    assert guards_are_whole(found.factors)
    assert guards_are_whole(found.sums)
    np.testing.assert_allclose(found.noise, expected.noise, rtol=1e-5)
    scale = np.abs(expected.factors).max(axis=(1, 2, 3, 4), keepdims=True)
    np.testing.assert_allclose(found.factors / scale, expected.factors / scale, atol=2e-6)
    tolerance = 2e-5 * np.abs(expected.sums).max(axis=(1, 2, 3), keepdims=True)
    assert (np.abs(found.sums - expected.sums) <= tolerance).all()
