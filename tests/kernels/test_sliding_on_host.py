"""The sliding sums' own source, run on the host, against scipy.ndimage in float64; outputs poisoned and guarded."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from tests.kernels.filter_definition import random_images
from tests.kernels.sliding_definition import assert_smoothed, pass_on_host
from xcorr_app.gpu.runtime.types import INPUT_TYPES
from xcorr_app.gpu.stencil.cosine_series import gaussian_series
from xcorr_app.gpu.stencil.sliding import SLIDING_BOUNDARIES

SUMS = ("double", "float")


def one_axis(images, sigma, boundary="reflect", outside=0.0):
    """Every column smoothed in float64, transposed."""
    smooth = ndimage.gaussian_filter1d(images.astype(np.float64), sigma, axis=1, mode=boundary, cval=outside)
    return smooth.transpose(0, 2, 1)


@pytest.mark.parametrize("boundary", SLIDING_BOUNDARIES)
@pytest.mark.parametrize("sums", SUMS)
def test_every_boundary(host_builds, sums, boundary):
    """Heights around the chunks of rows and the tile, columns around the warp; segments of 32 rows and one of all."""
    for sigma, height, width, rows in ((2.0, 70, 33, 32), (8.0, 33, 31, 64), (5.0, 97, 1, 32), (3.0, 64, 100, None)):
        images = random_images((2, height, width), "float32", seed=height)
        series = gaussian_series(sigma)
        result, _ = pass_on_host(host_builds, images, series, boundary, outside=0.75, rows=rows, sum_type=sums)
        assert_smoothed(result, one_axis(images, sigma, boundary, 0.75), 1)


@pytest.mark.parametrize("dtype", INPUT_TYPES)
@pytest.mark.parametrize("same", [True, False])
def test_every_type(host_builds, dtype, same):
    """A constant that no integer can hold is used as it is. Results are written by vectors, and one by one."""
    series, chosen = gaussian_series(4.0), {"result_type": dtype if same else "float32", "outside": 17.3}
    for shape in ((2, 50, 40), (2, 72, 65)):
        images = random_images(shape, dtype)
        result, clipped = pass_on_host(host_builds, images, series, "constant", **chosen)
        largest = max(17.3, float(np.abs(images.astype(np.float64)).max()))
        assert_smoothed(result, one_axis(images, 4.0, "constant", 17.3), largest)
        assert clipped == 0


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
def test_what_does_not_fit_an_integer_is_clipped_and_counted(host_builds, dtype):
    """Also where columns and rows end within a warp and a tile: what lies beyond is not counted."""
    limits = np.iinfo(dtype)
    images = np.random.default_rng(3).normal(0, 2.5 * limits.max, (3, 45, 37)).astype(np.float32)
    result, clipped = pass_on_host(host_builds, images, gaussian_series(2.5), result_type=dtype)
    expected = one_axis(images, 2.5)
    assert_smoothed(result, expected, np.abs(images).max(), 2e-7)
    expected = np.rint(expected)
    outside = int(((expected < limits.min) | (expected > limits.max)).sum())
    assert outside > 100
    assert clipped == outside


@pytest.mark.parametrize("sums", SUMS)
@pytest.mark.parametrize("sigma", [8.0, 64.0, 250.0])
def test_errors_do_not_grow_along_a_column(host_builds, sums, sigma):
    """Noise, a flat image, a ramp and steps: rounding the same way row after row is what a recursion would add up."""
    rng, rows = np.random.default_rng(4), np.arange(2048)[:, None]
    columns = [rng.random((2048, 4)), np.full((2048, 4), rng.random(4)), rows / 2048 * np.linspace(0.2, 1, 4)]
    columns += [np.repeat(rng.random((32, 4)), 64, axis=0), 0.5 + 0.5 * np.cos(rows * np.linspace(0.5, 8, 4) / sigma)]
    images = np.concatenate(columns, axis=1).astype(np.float32)[None]
    result, _ = pass_on_host(host_builds, images, gaussian_series(sigma), rows=2048, sum_type=sums)
    tolerance = {"double": 5e-7, "float": 1.5e-6}[sums]
    np.testing.assert_allclose(result, one_axis(images, sigma), rtol=0, atol=tolerance)


@pytest.mark.parametrize("sums", SUMS)
@pytest.mark.parametrize("boundary", SLIDING_BOUNDARIES)
def test_what_is_not_finite_stays_within_its_window(host_builds, sums, boundary):
    """Near the rim too, where a boundary brings it in from outside, and where the recursion begins and ends."""
    for seed, sigma, rows in ((1, 2.0, 32), (2, 2.5, 128), (3, 9.0, 128)):
        images, rng = random_images((2, 100, 37), "float32", seed=seed), np.random.default_rng(seed)
        for value in (np.nan, np.inf, -np.inf):
            images[rng.integers(2), rng.integers(100), rng.integers(37)] = value
        images[0, 0, 3] = images[1, 99, 36] = np.nan
        series = gaussian_series(sigma)
        result, _ = pass_on_host(host_builds, images, series, boundary, rows=rows, sum_type=sums)
        bad = ~np.isfinite(images)
        reached = ndimage.correlate1d(bad.astype(float), np.ones(2 * series.radius + 1), axis=1, mode=boundary, cval=0)
        reached = reached.transpose(0, 2, 1) > 0.5
        np.testing.assert_array_equal(np.isnan(result), reached)
        expected = one_axis(np.where(bad, 0, images), sigma, boundary)
        assert_smoothed(result[~reached], expected[~reached], 1)
