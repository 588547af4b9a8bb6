"""NaN and infinity stay within the footprint of the taps, whichever engine ran."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xcorr_app as xc
from xcorr_app.errors import ArgumentError

LOCAL_ENGINES = ("auto", "opencv")


@pytest.mark.share(3)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("engine", LOCAL_ENGINES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (7, 8), (8, 9), (11, 12), (15, 1), (1, 60), (63, 63)])
def test_one_bad_pixel_reaches_its_footprint_only(
    value: float, engine: Any, dtype: Any, shape: tuple[int, int], rng: np.random.Generator
) -> None:
    image, taps = rng.random((90, 110)).astype(dtype), rng.random(shape) + 0.1
    bad = image.copy()
    bad[45, 51] = value
    clean, actual = xc.filter_taps(image, taps, engine=engine), xc.filter_taps(bad, taps, engine=engine)
    top, left = 45 - (shape[0] - 1) + shape[0] // 2, 51 - (shape[1] - 1) + shape[1] // 2
    inside = np.zeros(image.shape, bool)
    inside[top : top + shape[0], left : left + shape[1]] = True
    assert not np.isfinite(actual[inside]).any()
    np.testing.assert_allclose(actual[~inside], clean[~inside], rtol=3e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("sigma", [0.7, 5.0, 30.0])
def test_a_separable_filter_keeps_it_in_the_rectangle(value: float, sigma: float, rng: np.random.Generator) -> None:
    made = xc.filters.gaussian(sigma)
    image = rng.random((300, 320))
    bad = image.copy()
    bad[150, 155] = value
    radius = made.shape[0] // 2
    inside = np.zeros(image.shape, bool)
    inside[max(0, 150 - radius) : 151 + radius, max(0, 155 - radius) : 156 + radius] = True
    actual = xc.convolve(bad, made)
    assert not np.isfinite(actual[inside]).any()
    np.testing.assert_allclose(actual[~inside], xc.convolve(image, made)[~inside], rtol=1e-12)


@pytest.mark.parametrize("cval", [np.nan, np.inf])
@pytest.mark.parametrize("made", [np.ones((3, 3)), np.ones((9, 9)), np.ones((13, 13)) + np.eye(13) + np.eye(13, k=2)])
def test_a_constant_outside_that_is_not_finite_reaches_the_margin_only(cval: float, made: Any) -> None:
    radius = made.shape[0] // 2
    actual = xc.convolve(np.ones((40, 40)), made, "constant", cval=cval)
    inner = actual[radius:-radius, radius:-radius]
    np.testing.assert_allclose(inner, made.sum(), rtol=1e-12)
    assert np.isfinite(actual).sum() == inner.size


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_transform_refuses_a_bad_pixel(value: float) -> None:
    image = np.ones((8, 8))
    image[2, 2] = value
    with pytest.raises(ArgumentError, match="NaN or infinity"):
        xc.convolve(image, np.ones((3, 3)), engine="fft")
