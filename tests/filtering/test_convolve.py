"""`convolve` and `filter_taps` against ``scipy.ndimage`` in float64: modes, types, origins, rounding, bad pixels."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

import xcorr_app as xc
from tests.filtering.oracle import (
    BOUNDARIES,
    TYPES,
    assert_same_pixels,
    convolved,
    correlated,
    largest_sum,
    random_image,
)
from xcorr_app.filtering import convolve as convolving
from xcorr_app.filtering.convolve import filter_frames
from xcorr_app.filtering.rounding import store

CVAL = 3.0


def taps_of(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    """Taps of full rank and of both signs whose results fill about the range of the image."""
    taps = rng.standard_normal(shape)
    return taps / np.abs(taps).sum() * 2


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mode", BOUNDARIES)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (5, 5), (6, 11), (12, 12)])
def test_every_mode_and_type(mode: Any, dtype: str, shape: tuple[int, int], rng: np.random.Generator) -> None:
    images, taps = random_image(rng, (2, 41, 67), dtype), taps_of(rng, shape)
    unit = largest_sum(images, taps, mode, CVAL)
    assert_same_pixels(xc.convolve(images, taps, mode, cval=CVAL), convolved(images, taps, mode, cval=CVAL), unit)
    assert_same_pixels(xc.filter_taps(images, taps, mode, cval=CVAL), correlated(images, taps, mode, cval=CVAL), unit)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (4, 4), (5, 8), (16, 16)])
@pytest.mark.parametrize("engine", ["auto", "fft"], indirect=True)
@pytest.mark.usefixtures("engine")
def test_every_origin(shape: tuple[int, int], rng: np.random.Generator) -> None:
    image, taps = random_image(rng, (13, 17), "float64"), taps_of(rng, shape)
    rows, columns = ({-(size // 2), 0, (size - 1) // 2} for size in shape)
    for origin in [(down, across) for down in rows for across in columns]:
        actual = xc.filter_taps(image, taps, "mirror", origin=origin)
        np.testing.assert_allclose(actual, correlated(image, taps, "mirror", origin=origin), atol=1e-12)
    rows, columns = ({-((size - 1) // 2), 0, (size - 1) // 2} for size in shape)
    for origin in [(down, across) for down in rows for across in columns]:
        actual = xc.convolve(image, taps, "wrap", origin=origin)
        np.testing.assert_allclose(actual, convolved(image, taps, "wrap", origin=origin), atol=1e-12)


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (2, 2), (5, 3)])
@pytest.mark.parametrize("mode", BOUNDARIES)
@pytest.mark.parametrize("taps_shape", [(31, 31), (63, 2)])
def test_images_smaller_than_the_filter(
    shape: tuple[int, int], mode: Any, taps_shape: tuple[int, int], rng: np.random.Generator
) -> None:
    image, taps = random_image(rng, shape, "float64"), taps_of(rng, taps_shape)
    np.testing.assert_allclose(xc.convolve(image, taps, mode), convolved(image, taps, mode), atol=1e-12)
    smooth = xc.filters.gaussian(4)
    np.testing.assert_allclose(xc.convolve(image, smooth, mode), convolved(image, smooth.taps, mode), atol=1e-12)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (4, 6), (13, 14), (30, 40)])
def test_valid_keeps_what_needs_nothing_from_outside(
    dtype: str, shape: tuple[int, int], rng: np.random.Generator
) -> None:
    images, taps = random_image(rng, (2, 30, 40), dtype), taps_of(rng, shape)
    (top, left), (down, across) = (shape[0] // 2, shape[1] // 2), (31 - shape[0], 41 - shape[1])
    exact = correlated(images, taps, "constant")[:, top : top + down, left : left + across]
    unit = largest_sum(images, taps)
    assert_same_pixels(xc.filter_taps(images, taps, "valid"), exact, unit)
    assert_same_pixels(xc.convolve(images, taps[::-1, ::-1], "valid"), exact, unit)


def test_any_number_of_leading_axes(rng: np.random.Generator) -> None:
    images, taps = random_image(rng, (2, 3, 1, 9, 12), "uint8"), taps_of(rng, (3, 4))
    actual = xc.convolve(images, taps)
    assert_same_pixels(actual, convolved(images, taps), largest_sum(images, taps))
    np.testing.assert_array_equal(actual[1, 2, 0], xc.convolve(images[1, 2, 0], taps))


@pytest.mark.parametrize("dtype", TYPES)
def test_read_only_and_scattered_images_and_taps(dtype: str, rng: np.random.Generator) -> None:
    images = random_image(rng, (40, 30, 2), dtype)
    scattered = images.transpose(2, 1, 0)[:, ::-2, ::3]
    taps = taps_of(rng, (18, 6))[::3, ::-1]
    before = images.copy(), taps.copy()
    images.setflags(write=False)
    taps.setflags(write=False)
    plain = xc.convolve(np.ascontiguousarray(scattered), np.ascontiguousarray(taps))
    np.testing.assert_array_equal(xc.convolve(scattered, taps), plain)
    np.testing.assert_array_equal(images, before[0])
    np.testing.assert_array_equal(taps, before[1])


@pytest.mark.parametrize("shape", [(20, 21), (20, 1), (1, 21)])
@pytest.mark.parametrize("taps", [np.array([[1, 2, 0], [3, 4, 5], [0, 7, 6]]), np.ones((1, 1)), np.ones((9, 1))])
def test_images_whose_pixels_lie_between_other_data(
    shape: tuple[int, int], taps: NDArray[np.float64], rng: np.random.Generator
) -> None:
    """As a field of records, whose lines are no whole number of pixels apart."""
    records = np.zeros(shape, [("quality", "u1"), ("height", "f4")])
    records["height"] = random_image(rng, shape, "float32")
    np.testing.assert_array_equal(xc.convolve(records["height"], taps), xc.convolve(records["height"].copy(), taps))


@pytest.mark.parametrize("dtype", [">u2", ">i2", ">f4", ">f8"])
def test_the_other_byte_order(dtype: str, rng: np.random.Generator) -> None:
    images, taps = random_image(rng, (20, 21), dtype[1:].replace("u2", "uint16")), taps_of(rng, (5, 4))
    actual = xc.convolve(images.astype(dtype), taps)
    assert actual.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(actual, xc.convolve(images, taps))


@pytest.mark.parametrize("taps", [np.ones((3, 3)), np.ones((12, 12)), np.eye(12), np.eye(65)])
def test_an_array_given_for_the_result_is_filled_wholly(taps: Any, rng: np.random.Generator) -> None:
    images = random_image(rng, (3, 25, 31), "float32")
    out = np.full((3, 2, 25, 31), np.nan, np.float32)
    filled, clipped = filter_frames(images, taps, out=out[:, 1])
    assert clipped == 0
    assert np.shares_memory(filled, out)
    np.testing.assert_array_equal(out[:, 1], xc.convolve(images, taps))
    assert np.isnan(out[:, 0]).all()


@pytest.mark.parametrize(("budget", "threads"), [(1, []), (2, [2]), (1000, [6])])
def test_frames_that_threads_work_on_together_fit_into_the_memory_for_them(
    budget: int, threads: list[int], monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    images, found = rng.normal(size=(12, 256, 256)), []

    def pool(workers: int, **how: Any) -> ThreadPoolExecutor:
        found.append(workers)
        return ThreadPoolExecutor(workers, **how)

    monkeypatch.setattr(convolving, "ThreadPoolExecutor", pool)
    monkeypatch.setattr(convolving, "worker_count", lambda: 6)
    monkeypatch.setattr(convolving, "_BYTES_AT_ONCE", budget * 259 * 259 * convolving._BYTES_OF_PIXEL)
    xc.convolve(images, np.ones((3, 3)))
    assert found == threads


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
@pytest.mark.parametrize("engine", ["auto", "opencv", "fft"], indirect=True)
@pytest.mark.usefixtures("engine")
def test_floats_keep_their_precision_with_taps_of_any_size(size: float, rng: np.random.Generator) -> None:
    image, taps = rng.random((12, 14)), rng.random((4, 5))
    expected = scipy.ndimage.convolve(image, taps)
    np.testing.assert_allclose(xc.convolve(image, taps * size) / size, expected, rtol=1e-12)


@pytest.mark.parametrize("size", [1e-44, 1e-30, 1e30, 3e38])
def test_single_precision_images_of_any_size(size: float, rng: np.random.Generator) -> None:
    image = (rng.random((12, 14)) * size).astype(np.float32)
    taps = rng.random((4, 5)) - 0.5
    expected = xc.convolve(image.astype(np.float64), taps).astype(np.float32)
    np.testing.assert_allclose(xc.convolve(image, taps), expected, rtol=0, atol=2e-6 * 20 * size)
    assert np.isfinite(xc.convolve(image, [[1, -1, 1, -1]])).all()


@pytest.mark.share(3)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("engine", ["auto", "opencv"], indirect=True)
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (7, 8), (8, 9), (11, 12), (15, 1), (1, 60), (63, 63)])
def test_one_bad_pixel_reaches_its_footprint_only(
    value: float, dtype: Any, shape: tuple[int, int], rng: np.random.Generator
) -> None:
    image, taps = rng.random((90, 110)).astype(dtype), rng.random(shape) + 0.1
    bad = image.copy()
    bad[45, 51] = value
    clean, actual = xc.filter_taps(image, taps), xc.filter_taps(bad, taps)
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
