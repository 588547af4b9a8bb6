"""Taps: rank, tolerance, scaling, origin; named filters against ``scipy.ndimage`` and scikit-image."""

from typing import Any

import numpy as np
import pytest
from scipy import ndimage

import xcorr_app as xc
from tests.filtering.oracle import BOUNDARIES
from xcorr_app import filters
from xcorr_app.filtering.taps import correlation_kernel, low_rank, multiplied_out


def kernel(taps: Any, **options: Any) -> Any:
    return correlation_kernel(taps, options.pop("origin", 0), flip=options.pop("flip", False), tolerance=1e-12)


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("shape", [(1, 9), (9, 1), (2, 2), (5, 5), (8, 31), (63, 63)])
def test_terms_of_low_rank_taps_give_the_taps_back(rank: int, shape: tuple[int, int], rng: np.random.Generator) -> None:
    taps = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))
    terms = low_rank(taps, 1e-12)
    assert len(terms) == min(rank, *shape)
    assert np.abs(multiplied_out(terms) - taps).sum() <= 1e-12 * np.abs(taps).sum()


def test_rank_3_stays_dense(rng: np.random.Generator) -> None:
    assert low_rank(rng.standard_normal((5, 3)) @ rng.standard_normal((3, 5)), 1e-9) == ()


def test_the_tolerance_is_a_fraction_of_the_sum_of_magnitudes() -> None:
    taps = np.ones((4, 4))
    taps[2, 1] += 16e-6
    assert len(low_rank(taps, 3e-6)) == 1
    assert len(low_rank(taps, 1e-7)) == 2


def test_a_gaussian_stored_as_float32_is_still_one_term_for_a_float32_result() -> None:
    assert len(low_rank(filters.gaussian(2.0).taps.astype(np.float32).astype(np.float64), 6e-8)) == 1


@pytest.mark.parametrize("size", [1e-310, 1e-30, 1.0, 1e300])
def test_scaled_taps_are_of_order_one_and_the_exponent_undoes_it(size: float) -> None:
    taps = np.array([[0.5, -1.0, 0.25]]) * size
    made = kernel(taps)
    assert 0.5 <= np.abs(made.dense).max() < 1
    np.testing.assert_array_equal(np.ldexp(made.dense, made.exponent), taps)


def test_the_centre_is_that_of_scipy() -> None:
    taps = np.ones((4, 5))
    assert kernel(taps).centre == (2, 2)
    assert kernel(taps, flip=True).centre == (1, 2)
    assert kernel(taps, origin=(-2, 1)).centre == (0, 3)
    assert kernel(taps, origin=(np.int64(1), -2), flip=True).centre == (0, 4)


NAMED: dict[str, tuple[Any, Any]] = {
    "gaussian": (xc.filters.gaussian(1.7), lambda x, **o: ndimage.gaussian_filter(x, 1.7, **o)),
    "gaussian by axis": (xc.filters.gaussian((3, 0.5)), lambda x, **o: ndimage.gaussian_filter(x, (3, 0.5), **o)),
    "box": (xc.filters.box(5), lambda x, **o: ndimage.uniform_filter(x, 5, **o)),
    "box by axis": (xc.filters.box((1, 21)), lambda x, **o: ndimage.uniform_filter(x, (1, 21), **o)),
    "even box": (xc.filters.box(4), lambda x, **o: ndimage.uniform_filter(x, 4, origin=-1, **o)),
    "sobel y": (xc.filters.sobel("y"), lambda x, **o: ndimage.sobel(x, 0, **o)),
    "sobel x": (xc.filters.sobel(1), lambda x, **o: ndimage.sobel(x, 1, **o)),
    "laplacian": (xc.filters.laplacian(), ndimage.laplace),
    "log": (xc.filters.log(2), lambda x, **o: ndimage.gaussian_laplace(x, 2, **o)),
    "log by axis": (xc.filters.log((2, 3)), lambda x, **o: ndimage.gaussian_laplace(x, (2, 3), **o)),
    "dog": (
        xc.filters.dog(1, 3),
        lambda x, **o: ndimage.gaussian_filter(x, 1, **o) - ndimage.gaussian_filter(x, 3, **o),
    ),
    "dog turned round": (
        xc.filters.dog((2, 1), (1, 2)),
        lambda x, **o: ndimage.gaussian_filter(x, (2, 1), **o) - ndimage.gaussian_filter(x, (1, 2), **o),
    ),
    "unsharp": (xc.filters.unsharp(2, 0.7), lambda x, **o: x + 0.7 * (x - ndimage.gaussian_filter(x, 2, **o))),
}


@pytest.mark.parametrize("mode", BOUNDARIES)
@pytest.mark.parametrize("name", NAMED)
def test_a_named_filter_equals_the_function_it_is_named_after(name: str, mode: Any, rng: np.random.Generator) -> None:
    made, function = NAMED[name]
    image = rng.standard_normal((37, 53))
    # With a constant outside that is not zero, SciPy's passes take cval anew, which dense taps do not.
    np.testing.assert_allclose(xc.convolve(image, made, mode), function(image, mode=mode), rtol=0, atol=1e-12)


@pytest.mark.parametrize("sigma", [0.3, 0.5, 1.0, 2.5, 7.0, 13.0, 24.0, 64.0, 100.0, 250.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_gaussian_of_any_width_equals_that_of_scipy(sigma: float, dtype: Any, rng: np.random.Generator) -> None:
    image = rng.random((90, 131)).astype(dtype)
    smooth = xc.convolve(image, xc.filters.gaussian(sigma))
    expected = ndimage.gaussian_filter(image.astype(np.float64), sigma)
    assert np.abs(smooth - expected).max() <= (1e-6 if dtype == np.float32 else 1e-12)


def test_a_difference_of_nearly_equal_gaussians_keeps_its_precision(rng: np.random.Generator) -> None:
    made = xc.filters.dog(3, 3.001)
    image = rng.random((60, 60)).astype(np.float32)
    exact = ndimage.convolve(image.astype(np.float64), made.taps)
    assert np.abs(xc.convolve(image, made) - exact).max() <= 2e-6 * np.abs(made.taps).sum()


@pytest.mark.parametrize("name", NAMED)
def test_the_dense_taps_of_a_named_filter_filter_alike(name: str, rng: np.random.Generator) -> None:
    made = NAMED[name][0]
    image = rng.random((20, 24))
    assert made.taps.shape == made.shape
    np.testing.assert_allclose(xc.convolve(image, made.taps), xc.convolve(image, made), rtol=0, atol=1e-13)
