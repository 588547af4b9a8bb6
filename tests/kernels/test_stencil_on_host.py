"""Filter kernels, their own source run on the host, against scipy.ndimage in float64; outputs guarded."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import ndimage

from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from tests.kernels.stencil_definition import (
    INTEGERS,
    TYPES,
    assert_filtered,
    assert_separable,
    assert_smoothed,
    pass_on_host,
    random_images,
    random_taps,
    random_terms,
    separable_on_host,
)
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.types import INPUT_TYPES
from xcorr_app.gpu.stencil.cosine_series import (
    TOLERANCE,
    gaussian_series,
)
from xcorr_app.gpu.stencil.exchange import PUBLISHED, ExchangeOptions
from xcorr_app.gpu.stencil.problem import BOUNDARIES, FilterProblem, taps_argument
from xcorr_app.gpu.stencil.reuse import filter_launch

SHAPES = {"reuse": (3, 5), "reuse_wide": (6, 9), "exchange": (4, 8)}
"""A filter for every kernel."""

NO_COUNT = SimpleNamespace(ctypes=SimpleNamespace(data=None))
"""Null pointer."""


def filtered(
    folder,
    images,
    taps,
    boundary="reflect",
    *,
    kernel="auto",
    outside=0.0,
    origin=(0, 0),
    result_type=None,
    guard=True,
    clipped=NO_COUNT,
    double_sums=False,
    clips=True,
    **options,
):
    """What `filtered_on_device` does, without a device."""
    problem = FilterProblem(images.shape[-2:], taps.shape, len(images), boundary, origin)
    types = {"image_type": images.dtype.name, "result_type": result_type or images.dtype.name}
    launch = filter_launch(problem, kernel, **types, double_sums=double_sums, clips=clips, **options)
    poison = np.nan if np.dtype(types["result_type"]).kind == "f" else 99
    results = guarded(np.full((len(images), *problem.result_shape), poison, types["result_type"]))
    inputs = guarded(images) if guard else images
    values = taps_argument(taps, outside, images.dtype.name, double_sums=double_sums)
    run_kernel(folder, launch, (inputs, results, clipped, values), launch.extra)
    assert guards_are_whole(results)
    return results


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("kernel", SHAPES)
def test_every_boundary(host_builds, kernel, boundary):
    taps = random_taps(SHAPES[kernel])
    for shape in ((2, 21, 132), (1, 9, 133)):
        images = random_images(shape, "float32")
        result = filtered(host_builds, images, taps, boundary, kernel=kernel, outside=0.75)
        assert_filtered(result, images, taps, boundary, 0.75)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("kernel", ["reuse", "reuse_wide"])
def test_every_type(host_builds, kernel, dtype, same):
    """A constant that no integer can hold is used as it is."""
    images, taps = random_images((2, 10, 136), dtype), random_taps((4, 7))
    options = {"kernel": kernel, "outside": 17.3, "result_type": dtype if same else "float32"}
    assert_filtered(filtered(host_builds, images, taps, "constant", **options), images, taps, "constant", 17.3)


@pytest.mark.parametrize("kernel", SHAPES)
def test_nan_and_infinity_stay_within_their_footprint(host_builds, kernel):
    rows, columns = SHAPES[kernel]
    images, taps = random_images((1, 30, 150), "float32"), np.ones(SHAPES[kernel], "float32")
    images[0, 12, 70], images[0, 25, 127] = np.nan, np.inf
    result = filtered(host_builds, images, taps, kernel=kernel)
    reached = np.zeros((30, 150), bool)
    for y, x in ((12, 70), (25, 127)):
        reached[y - rows + 1 + rows // 2 : y + rows // 2 + 1, x - columns + 1 + columns // 2 : x + columns // 2 + 1] = 1
    np.testing.assert_array_equal(~np.isfinite(result[0]), reached)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
@pytest.mark.parametrize("kernel", SHAPES)
def test_integers_are_rounded_half_to_even_and_clipped(host_builds, kernel, dtype):
    limits = np.iinfo(dtype)
    images = np.array([limits.min, limits.max, 1, 2, 3, 5, 254], dtype).reshape(1, 1, 7)
    for gain in (0.5, 1.5, -1.0, 3e9):
        taps = np.zeros(SHAPES[kernel], "float32")
        taps[taps.shape[0] // 2, taps.shape[1] // 2] = gain
        exact = np.rint(images * np.float64(gain))
        expected, clipped = np.clip(exact, limits.min, limits.max), guarded(np.array([1000], np.uint64))
        result = filtered(host_builds, images, taps, kernel=kernel, clipped=clipped)
        np.testing.assert_array_equal(result, expected)
        assert clipped[0] == 1000 + np.count_nonzero(exact != expected)
        assert guards_are_whole(clipped)


def exchanged(folder, images, taps, boundary="reflect", *, options=None, **how):
    tuning = None if options is None else options.tuning()
    return filtered(folder, images, taps, boundary, kernel="exchange", tuning=tuning, **how)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_columns_of_the_last_sub_block(host_builds, boundary, share, apart):
    """One to all 32 of them, after none, one or two whole sub-blocks."""
    taps, options = random_taps((3, 7)), ExchangeOptions(rows=4, share_last=share, edges_apart=apart)
    for width in (7, 8, 30, 32, 37, 38, 39, 64, 70, 71):
        images = random_images((2, 9, width), "float32")
        result = exchanged(host_builds, images, taps, boundary, options=options, outside=0.5)
        assert_filtered(result, images, taps, boundary, 0.5)


@pytest.mark.parametrize("width", [3, 5, 7])
def test_elements_indexed_by_the_lane(host_builds, width):
    images, taps = random_images((2, 9, 70), "float32"), random_taps((3, width))
    result = filtered(host_builds, images, taps, "mirror", kernel="exchange", tuning={"RUN_TIME_INDEX": 1})
    assert_filtered(result, images, taps, "mirror", 0)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_by_exchange(host_builds, dtype):
    images, taps = random_images((2, 10, 77), dtype), random_taps((4, 7))
    result = exchanged(host_builds, images, taps, "constant", outside=17.3, double_sums=dtype == "uint16")
    assert_filtered(result, images, taps, "constant", 17.3)


def test_options_name_their_macros_and_refuse_what_makes_no_sense():
    assert ExchangeOptions().tuning() == PUBLISHED
    assert PUBLISHED["BLOCK_ROWS"] == 56
    assert set(PUBLISHED.values()) == {1, 4, 56}
    for wrong in ({"rows": 0}, {"rows": 2.5}, {"warps": 9}, {"warps": True}):
        with pytest.raises(ArgumentError, match="kernel 'exchange' takes 1 to"):
            ExchangeOptions(**wrong)


def check(folder, images, terms, boundary="reflect", outside=0.0, origin=(0, 0), **options):
    options = {"outside": outside, "origin": origin, **options}
    result, _ = separable_on_host(folder, images, terms, boundary, **options)
    assert_separable(result, images, terms, boundary, outside, origin)


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("columns", [4, 2, 1])
def test_every_boundary_of_terms(host_builds, columns, boundary):
    tuning = {"LANE_COLUMNS": columns, "ROW_SUMS": 4 if columns == 1 else 8}
    for shape in ((2, 21, 132), (1, 19, 133)):
        images = random_images(shape, "float32")
        check(host_builds, images, random_terms((7, 10)), boundary, outside=0.75, tuning=tuning)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("count", [1, 2])
def test_every_type_of_terms(host_builds, count, dtype, same):
    """A constant that no integer can hold is used as it is."""
    images, terms = random_images((2, 10, 136), dtype), random_terms((4, 7), count)
    check(host_builds, images, terms, "constant", 17.3, result_type=dtype if same else "float32")


@pytest.mark.parametrize("count", [1, 2])
def test_nan_and_infinity_stay_within_the_footprint_of_terms(host_builds, count):
    images, ones = random_images((1, 30, 150), "float32"), (np.ones(5), np.ones(7))
    images[0, 12, 70], images[0, 25, 127] = np.nan, np.inf
    result, _ = separable_on_host(host_builds, images, [ones] * count)
    reached = np.zeros((30, 150), bool)
    for y, x in ((12, 70), (25, 127)):
        reached[y - 2 : y + 3, x - 3 : x + 4] = True
    np.testing.assert_array_equal(~np.isfinite(result[0]), reached)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_rounded_half_to_even_clipped_and_counted(host_builds, dtype):
    limits = np.iinfo(dtype)
    images = np.array([limits.min, limits.max, 1, 2, 3, 5, 254] * 19, dtype).reshape(1, 1, 133)
    for gain in (0.5, 1.5, -1.0, 16.5, 3e9):
        rounded = np.rint(images * gain)
        result, clipped = separable_on_host(host_builds, images, [(np.array([0.0, gain, 0.0]), np.array([1.0]))])
        np.testing.assert_array_equal(result, np.clip(rounded, limits.min, limits.max))
        assert clipped == np.count_nonzero((rounded < limits.min) | (rounded > limits.max))


SUMS = ("double", "float")


def one_axis(images, sigma, boundary="reflect", outside=0.0):
    """Every column smoothed in float64, transposed."""
    smooth = ndimage.gaussian_filter1d(images.astype(np.float64), sigma, axis=1, mode=boundary, cval=outside)
    return smooth.transpose(0, 2, 1)


@pytest.mark.parametrize("boundary", BOUNDARIES[:-1])
@pytest.mark.parametrize("sums", SUMS)
def test_every_boundary_of_sliding_sums(host_builds, sums, boundary):
    """Heights around the chunks of rows and the tile, columns around the warp; segments of 32 rows and one of all."""
    for sigma, height, width, rows in ((2.0, 70, 33, 32), (8.0, 33, 31, 64), (5.0, 97, 1, 32), (3.0, 64, 100, None)):
        images = random_images((2, height, width), "float32", seed=height)
        series = gaussian_series(sigma)
        result, _ = pass_on_host(host_builds, images, series, boundary, outside=0.75, rows=rows, sum_type=sums)
        assert_smoothed(result, one_axis(images, sigma, boundary, 0.75), 1)


@pytest.mark.parametrize("dtype", INPUT_TYPES)
@pytest.mark.parametrize("same", [True, False])
def test_every_type_of_sliding_sums(host_builds, dtype, same):
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
@pytest.mark.parametrize("boundary", BOUNDARIES[:-1])
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


SIGMAS = (2.0, 3.3, 8.0, 16.0, 64.0, 250.0)


def taps_of_scipy(sigma, radius):
    """What a single bright pixel becomes."""
    bright = np.zeros(2 * radius + 1)
    bright[radius] = 1
    return ndimage.gaussian_filter1d(bright, sigma, mode="constant")


@pytest.mark.parametrize("sigma", SIGMAS)
def test_a_series_is_the_gaussian_of_scipy_and_says_how_exactly(sigma):
    series = gaussian_series(sigma)
    expected = taps_of_scipy(sigma, series.radius)
    error = np.abs(series.taps - expected).sum()
    assert error <= TOLERANCE
    assert error == pytest.approx(series.error, rel=1e-6, abs=1e-12)
    assert series.taps.sum() == pytest.approx(1, abs=1e-13)
    assert series.terms == 5
    assert (np.diff(series.angles) > 0).all()
