"""Integers: half to even, clipped, counted; never truncated, never wrapped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy

import xcorr_app as xc
from xcorr_app.filtering.convolve import filter_frames
from xcorr_app.filtering.rounding import store


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
def test_halves_go_to_the_even_neighbour(dtype: str) -> None:
    image = np.array([[1, 3, 5, 7]], dtype=dtype)
    assert xc.convolve(image, [[0.5]]).tolist() == [[0, 2, 2, 4]]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
def test_results_out_of_range_become_the_nearest_limit_and_are_counted(dtype: str) -> None:
    limits = np.iinfo(dtype)
    image = np.array([[limits.min, limits.max, 1, 0]], dtype=dtype)
    filtered, clipped = filter_frames(image, [[2]])
    assert filtered.tolist() == [[limits.min, limits.max, 2, 0]]
    assert clipped == (2 if dtype == "int16" else 1)
    filtered, clipped = filter_frames(image, [[-3]])
    assert filtered.tolist() == [[limits.max if dtype == "int16" else 0, limits.min, max(limits.min, -3), 0]]
    assert clipped == 2


def test_clipped_pixels_are_counted_over_all_frames() -> None:
    assert filter_frames(np.full((2, 3, 4, 5), 200, np.uint8), [[1.5]])[1] == 120


def test_a_value_that_rounds_to_the_limit_is_not_clipped() -> None:
    assert store(np.array([[255.4, -0.5]]), 0, np.empty((1, 2), np.uint8)) == 0


@pytest.mark.parametrize("size", [1e-300, 1e-20, 1e20, 1e300])
@pytest.mark.parametrize("engine", ["auto", "opencv", "fft"])
def test_floats_keep_their_precision_with_taps_of_any_size(size: float, engine: Any, rng: np.random.Generator) -> None:
    image, taps = rng.random((12, 14)), rng.random((4, 5))
    expected = scipy.ndimage.convolve(image, taps)
    np.testing.assert_allclose(xc.convolve(image, taps * size, engine=engine) / size, expected, rtol=1e-12)


@pytest.mark.parametrize("size", [1e-44, 1e-30, 1e30, 3e38])
def test_single_precision_images_of_any_size(size: float, rng: np.random.Generator) -> None:
    image = (rng.random((12, 14)) * size).astype(np.float32)
    taps = rng.random((4, 5)) - 0.5
    expected = xc.convolve(image.astype(np.float64), taps).astype(np.float32)
    np.testing.assert_allclose(xc.convolve(image, taps), expected, rtol=0, atol=2e-6 * 20 * size)
    assert np.isfinite(xc.convolve(image, [[1, -1, 1, -1]])).all()
