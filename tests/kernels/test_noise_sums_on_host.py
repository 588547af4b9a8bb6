"""The kernel that sums an image's products with itself, on the host, against array operations."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from xcorr_app.gpu.peaks.noise_sums import mean_products, noise_sums_launch
from xcorr_app.registration.quality import _mean_products


@pytest.mark.parametrize(
    ("shape", "period"), [((41, 67), 8), ((9, 300), 4), ((6, 4), 6), ((129, 1031), 8), ((67, 1501), 4)]
)
@pytest.mark.parametrize("dtype", ["float32", "uint8", "float64"])
def test_mean_products(host_builds, rng, shape, period, dtype):
    images = (100 + 20 * rng.normal(size=(3, *shape)).cumsum(axis=2) / shape[1]).astype(dtype)
    groups = shape[0] // period
    launch = noise_sums_launch(3, groups * shape[1], dtype)
    sums = guarded(np.full((3, *launch.extra, 14), np.nan))
    run_kernel(host_builds, launch, (guarded(images), sums), (*shape, period, groups, *launch.extra))
    assert guards_are_whole(sums)
    expected = _mean_products(images.astype(np.float64), period)
    np.testing.assert_allclose(mean_products(sums, groups, shape[1]), expected, rtol=1e-9, atol=1e-9)
