"""Named filters against the functions of the same name in ``scipy.ndimage`` and scikit-image."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import ndimage

import xcorr_app as xc
from tests.filtering.oracle import BOUNDARIES
from xcorr_app.errors import ArgumentError

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


def test_names_say_the_parameters() -> None:
    assert [made.name for made, _ in NAMED.values()] == [
        "gaussian(1.7)",
        "gaussian((3.0, 0.5))",
        "box(5)",
        "box((1, 21))",
        "box(4)",
        "sobel(y)",
        "sobel(x)",
        "laplacian()",
        "log(2.0)",
        "log((2.0, 3.0))",
        "dog(1.0, 3.0)",
        "dog((2.0, 1.0), (1.0, 2.0))",
        "unsharp(2.0, 0.7)",
    ]


@pytest.mark.parametrize("sigma", [0, -1, 251, np.nan, (1,), (1, 2, 3), (1, 0), "2"])
def test_a_sigma_out_of_range_is_refused(sigma: Any) -> None:
    for make in (
        xc.filters.gaussian,
        xc.filters.log,
        lambda s: xc.filters.dog(1, s),
        lambda s: xc.filters.unsharp(s, 1),
    ):
        with pytest.raises(ArgumentError, match=r"0\.1 to 250"):
            make(sigma)


@pytest.mark.parametrize("size", [0, -3, 2.5, True, (3,), (1, 2, 3), "3"])
def test_a_size_that_is_no_whole_number_is_refused(size: Any) -> None:
    with pytest.raises(ArgumentError, match="size of a box"):
        xc.filters.box(size)


@pytest.mark.parametrize("axis", ["z", 2, -1, None])
def test_an_unknown_axis_is_refused(axis: Any) -> None:
    with pytest.raises(ArgumentError, match="axis of a Sobel"):
        xc.filters.sobel(axis)


@pytest.mark.parametrize("amount", [np.nan, np.inf])
def test_an_amount_that_is_not_finite_is_refused(amount: float) -> None:
    with pytest.raises(ArgumentError, match="amount"):
        xc.filters.unsharp(1, amount)
