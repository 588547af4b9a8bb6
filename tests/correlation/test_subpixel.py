"""Sub-pixel positions of surfaces whose maximum is known, by every method."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xcorr_app.correlation.subpixel import METHODS, radius_of, refine
from xcorr_app.gpu.runtime.arrays import to_host

REFINING = [method for method in METHODS if method != "none"]
OFFSETS = np.array([(0, 0), (0.3, -0.4), (-0.5, 0.5), (0.11, 0.02), (0.49, 0.49), (-0.25, -0.33)])
GAUSSIAN_ERROR = {"gaussian": 1e-6, "dft": 0.02, "quadratic": 0.05, "parabolic": 0.05}
"""Pixels, for a round Gaussian of deviation 2; the polynomials do not have its shape."""


def grid(method):
    steps = np.arange(-radius_of(method), radius_of(method) + 1.0)
    return np.meshgrid(steps, steps, indexing="ij")


def gaussians(method, offsets, deviation=2.0):
    y, x = grid(method)
    return np.stack([np.exp(-((y - dy) ** 2 + (x - dx) ** 2) / (2 * deviation**2)) for dy, dx in offsets])


def refined(xp, values, method, upsample=100):
    return [to_host(part) for part in refine(xp.asarray(values), method, upsample)]


@pytest.mark.parametrize("method", REFINING)
def test_gaussian_peak(xp, method):
    offset, height = refined(xp, gaussians(method, OFFSETS), method)
    np.testing.assert_allclose(offset, OFFSETS, atol=GAUSSIAN_ERROR[method])
    np.testing.assert_allclose(height, 1.0, atol=0.01)


@pytest.mark.parametrize("upsample", [1, 2, 3, 10, 20, 1000])
def test_upsampling_never_makes_the_position_coarse(xp, upsample):
    offset, _ = refined(xp, gaussians("dft", OFFSETS), "dft", upsample)
    np.testing.assert_allclose(offset, OFFSETS, atol=0.06 if upsample < 10 else 0.02)


@pytest.mark.parametrize("method", ["quadratic", "parabolic"])
def test_quadratic_surface_is_exact(xp, method):
    y, x = grid(method)
    dy, dx, top = 0.27, -0.41, 0.8
    values = top - 0.11 * (y - dy) ** 2 - 0.07 * (x - dx) ** 2
    offset, height = refined(xp, values[None], method)
    np.testing.assert_allclose(offset, [(dy, dx)], atol=1e-12)
    np.testing.assert_allclose(height, [top], atol=1e-12)


def test_gaussian_is_exact_for_an_inclined_gaussian_of_any_width(xp):
    y, x = grid("gaussian")
    for scale in (0.3, 0.05, 0.004):
        a, b = y - 0.31, x + 0.22
        values = 0.7 * np.exp(-scale * (a**2 + 1.7 * b**2 + 0.9 * a * b))
        np.testing.assert_allclose(refined(xp, values[None], "gaussian")[0], [(0.31, -0.22)], atol=1e-6)


def test_a_gaussian_is_fitted_where_all_nine_values_stand_above_the_noise(xp):
    """The logarithm of less than a fiftieth of the peak is mostly noise: the polynomial is fitted instead."""
    wide, narrow = (gaussians("gaussian", [(0.1, -0.1)], deviation) for deviation in (0.6, 0.5))
    np.testing.assert_allclose(refined(xp, wide, "gaussian")[0], [(0.1, -0.1)], atol=1e-6)
    by_polynomial = refined(xp, narrow, "quadratic")[0]
    assert np.abs(by_polynomial - (0.1, -0.1)).max() > 1e-3
    np.testing.assert_allclose(refined(xp, narrow, "gaussian")[0], by_polynomial, atol=1e-12)


@pytest.mark.parametrize("method", REFINING)
def test_without_a_neighbour_along_an_axis_the_position_stays_there(xp, method):
    values = gaussians(method, [(0.3, 0.2), (0.3, 0.2)])
    radius = radius_of(method)
    values[0, radius - 1, radius] = np.nan
    offset, _ = refined(xp, values, method)
    assert offset[0, 0] == 0
    parabola = refined(xp, values[:, radius - 1 : radius + 2, radius - 1 : radius + 2], "parabolic")[0]
    assert offset[0, 1] == parabola[0, 1] != 0
    np.testing.assert_allclose(offset[1], (0.3, 0.2), atol=GAUSSIAN_ERROR[method])


@pytest.mark.parametrize("method", REFINING)
def test_without_any_neighbour_the_peak_itself_is_the_answer(xp, method):
    values = np.full_like(gaussians(method, [(0.3, 0.2)]), np.nan)
    radius = radius_of(method)
    values[0, radius, radius] = 0.7
    offset, height = refined(xp, values, method)
    np.testing.assert_array_equal(offset[0], [0, 0])
    assert height[0] == 0.7


@settings(max_examples=80, deadline=None)
@given(
    method=st.sampled_from(METHODS),
    seed=st.integers(0, 2**32 - 1),
    upsample=st.sampled_from([1, 2, 7, 20, 100]),
    slope=st.floats(-5, 5),
)
def test_the_position_never_leaves_the_neighbouring_pixels(method, seed, upsample, slope):
    y, _ = grid(method)
    values = np.random.default_rng(seed).normal(size=(3, *y.shape)) + slope * y
    offset, height = refine(values, method, upsample)
    assert np.isfinite(offset).all()
    assert np.isfinite(height).all()
    assert np.abs(offset).max() <= 1.0


@pytest.mark.parametrize("method", REFINING)
def test_plateaus_pits_and_zeros_have_no_better_position(xp, method):
    y, _ = grid(method)
    values = np.stack([np.full(y.shape, 0.5), np.zeros(y.shape), np.full(y.shape, -0.3)])
    offset, height = refined(xp, values, method)
    np.testing.assert_allclose(offset, 0.0, atol=1e-9)
    np.testing.assert_allclose(height, values[:, 0, 0], atol=1e-9)
