"""The filter kernels' own source, run on the host, against scipy.ndimage in float64; outputs poisoned and guarded."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.filter_definition import TYPES, assert_filtered, random_images, random_taps
from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from xcorr_app.gpu.filter_launch import BOUNDARIES, FilterProblem, filter_launch, taps_argument
from xcorr_app.gpu.launch import DeviceLimits

SHAPES = {"reuse": (3, 5), "reuse_wide": (6, 9), "exchange_3": (3, 3), "exchange_5": (5, 5)}
"""A filter for every kernel."""


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
    **options,
):
    """What `filter_on_device` does, without a device."""
    problem = FilterProblem(images.shape[-2:], taps.shape, len(images), boundary, origin)
    types = {"image_type": images.dtype.name, "result_type": result_type or images.dtype.name}
    launch = filter_launch(problem, kernel, **types, **options)
    poison = np.nan if np.dtype(types["result_type"]).kind == "f" else 99
    results = guarded(np.full((len(images), *problem.result_shape), poison, types["result_type"]))
    inputs = guarded(images) if guard else images
    run_kernel(folder, launch, (inputs, results, taps_argument(taps, outside, images.dtype.name)), launch.extra)
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


@pytest.mark.parametrize("width", [1, 2, 3, 4, 6, 8, 9, 16, 17, 24, 31, 32, 33, 62, 63])
@pytest.mark.parametrize("kernel", ["reuse", "reuse_wide"])
def test_widths_of_filters(host_builds, kernel, width):
    images, taps = random_images((1, 9, 260), "float32"), random_taps((1 + width % 7, width))
    assert_filtered(filtered(host_builds, images, taps, kernel=kernel), images, taps)


@pytest.mark.parametrize("height", [1, 2, 7, 8, 17, 33, 63])
def test_heights_of_filters(host_builds, height):
    """By rolling sums as long as they fit into registers, and with sub-blocks of few and of many rows."""
    images, taps = random_images((1, 75, 33), "float32"), random_taps((height, 2))
    for multiprocessors in (1, 132):
        device = DeviceLimits(multiprocessors=multiprocessors)
        assert_filtered(filtered(host_builds, images, taps, device=device), images, taps)


@pytest.mark.parametrize("kernel", SHAPES)
@pytest.mark.parametrize("boundary", ["reflect", "mirror", "wrap"])
def test_small_images_and_those_at_the_rim_of_a_warp(host_builds, kernel, boundary):
    taps = random_taps(SHAPES[kernel])
    for height, width in [(1, 1), (2, 1), (1, 2), (2, 3), (3, 31), (17, 32), (9, 33), (8, 127), (1, 128), (3, 129)]:
        images = random_images((2, height, width), "float32")
        assert_filtered(filtered(host_builds, images, taps, boundary, kernel=kernel), images, taps, boundary)


@pytest.mark.parametrize("boundary", BOUNDARIES[:-1])
@pytest.mark.parametrize("kernel", ["reuse", "reuse_wide"])
def test_images_smaller_than_the_filter(host_builds, kernel, boundary):
    images, taps = random_images((1, 2, 3), "float32"), random_taps((11, 20))
    assert_filtered(filtered(host_builds, images, taps, boundary, kernel=kernel), images, taps, boundary)


@pytest.mark.parametrize("kernel", ["reuse", "reuse_wide"])
@pytest.mark.parametrize(("shape", "origin"), [((4, 6), (-2, 2)), ((5, 3), (2, -1)), ((1, 12), (0, -6))])
def test_origin(host_builds, kernel, shape, origin):
    images, taps = random_images((1, 19, 260), "float32"), random_taps(shape)
    assert_filtered(filtered(host_builds, images, taps, kernel=kernel, origin=origin), images, taps, origin=origin)


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


@pytest.mark.parametrize("kernel", ["reuse", "reuse_wide"])
def test_an_image_that_begins_off_a_16_byte_boundary(host_builds, kernel):
    whole, taps = guarded(random_images((1, 1, 8 * 256 + 1), "float32")), random_taps((3, 3))
    images = whole[0, 0, 1:].reshape(1, 8, 256)
    assert images.ctypes.data % 16 == 4
    assert_filtered(filtered(host_builds, images, taps, kernel=kernel, guard=False), images, taps)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
@pytest.mark.parametrize("kernel", SHAPES)
def test_integers_are_rounded_half_to_even_and_clipped(host_builds, kernel, dtype):
    limits = np.iinfo(dtype)
    images = np.array([limits.min, limits.max, 1, 2, 3, 5, 254], dtype).reshape(1, 1, 7)
    for gain in (0.5, 1.5, -1.0, 3e9):
        taps = np.zeros(SHAPES[kernel], "float32")
        taps[taps.shape[0] // 2, taps.shape[1] // 2] = gain
        expected = np.clip(np.rint(images * np.float64(gain)), limits.min, limits.max)
        np.testing.assert_array_equal(filtered(host_builds, images, taps, kernel=kernel), expected)


@pytest.mark.parametrize("dtype", ["uint16", "float32"])
@pytest.mark.parametrize("shape", [(3, 3), (11, 11), (19, 19), (31, 31), (63, 63)])
def test_rounding_stays_small_where_all_products_are_positive(host_builds, shape, dtype):
    """Bright images and smoothing taps: sums grow to the largest that there are, and every addition rounds."""
    rng = np.random.default_rng(3)
    images, taps = rng.random((1, 12, 130)) * 5535 + 60000, rng.random(shape, "float32") + np.float32(0.5)
    images, taps = images.astype(dtype), taps / taps.sum()
    assert_filtered(filtered(host_builds, images, taps), images, taps)


@pytest.mark.parametrize("columns", [0, 1])
@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("kernel", ["exchange_3", "exchange_5"])
def test_every_step_of_the_ablation(host_builds, kernel, columns, rows):
    images, taps = random_images((2, 21, 101), "uint16"), random_taps(SHAPES[kernel])
    tuning = {"COLUMN_REUSE": columns, "ROW_REUSE": rows}
    options = {"kernel": kernel, "tuning": tuning, "result_type": "float32"}
    assert_filtered(filtered(host_builds, images, taps, **options), images, taps)


@pytest.mark.parametrize(("height", "ahead"), [(3, 3), (8, 4), (9, 2)])
def test_rows_in_flight(host_builds, height, ahead):
    images, taps = random_images((1, 29, 132), "uint8"), random_taps((height, 3))
    options = {"tuning": {"ROWS_AHEAD": ahead}, "result_type": "float32"}
    assert_filtered(filtered(host_builds, images, taps, **options), images, taps)


def test_other_taps_are_the_same_build(host_builds):
    images = random_images((1, 9, 40), "float32")
    first, second = (random_taps((3, 3), seed) for seed in (5, 6))
    before = filtered(host_builds, images, first)
    builds = set(host_builds.iterdir())
    assert not np.array_equal(before, filtered(host_builds, images, second))
    assert set(host_builds.iterdir()) == builds
