"""The fused pass on the device against scipy.ndimage in float64; outputs poisoned, every type and boundary."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import ndimage

from tests.device import NEEDS_DEVICE
from tests.kernels.filter_definition import INTEGERS, TYPES, assert_all_is_written, random_images
from tests.kernels.separable_definition import (
    assert_separable,
    gaussian,
    random_terms,
    separable_by_definition,
    separable_on_device,
)
from xcorr_app.gpu.stencil.problem import BOUNDARIES

pytestmark = NEEDS_DEVICE


def check(cupy, images, terms, boundary="reflect", outside=0.0, origin=(0, 0), **options):
    on_device = cupy.asarray(images)
    result = separable_on_device(on_device, terms, boundary=boundary, outside=outside, origin=origin, **options).get()
    assert_separable(result, images, terms, boundary, outside, origin)


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("taps", [(5, 8), (17, 33), (40, 12), (100, 70)])
@pytest.mark.parametrize("count", [1, 2])
def test_every_boundary(cupy, count, taps, boundary):
    for shape in ((2, 3, 131, 260), (1, 107, 1029)):
        check(cupy, random_images(shape, "float32"), random_terms(taps, count), boundary, 0.5)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("result", ["same", "float32"])
@pytest.mark.parametrize("taps", [(3, 3), (17, 17), (33, 33), (65, 65), (68, 129)])
def test_every_type(cupy, dtype, result, taps):
    images = random_images((3, 200, 301), dtype)
    check(cupy, images, random_terms(taps), dtype=None if result == "same" else "float32")
    check(cupy, images, random_terms(taps, 2), "constant", 17.3, dtype=None if result == "same" else "float32")


@pytest.mark.parametrize("rows", range(1, 130, 4))
def test_lengths_of_taps(cupy, rows):
    taps = (rows, 1 + rows * 7 % 129)
    check(cupy, random_images((1, 170, 500), "float32"), random_terms(taps))
    check(cupy, random_images((1, 170, 500), "uint8"), random_terms(taps, 2), "mirror")


@pytest.mark.parametrize("sigma", [0.3, 1, 2, 4, 8, 15])
@pytest.mark.parametrize("dtype", ["float32", "uint16"])
def test_gaussians(cupy, sigma, dtype):
    images = random_images((2, 512, 640), dtype)
    result = separable_on_device(cupy.asarray(images), gaussian(sigma), dtype="float32").get()
    expected = ndimage.gaussian_filter(images.astype(np.float64), sigma, axes=(1, 2))
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-6 * np.abs(images.astype(np.float64)).max())
    check(cupy, images, gaussian(sigma))


@pytest.mark.parametrize("sigma", [1, 2, 4, 8])
@pytest.mark.parametrize(("lowest", "highest"), [(60000, 65535), (0, 65535), (100, 4000)])
def test_results_of_16_bits_are_those_of_float64(cupy, sigma, lowest, highest):
    rng = np.random.default_rng(sigma)
    images = rng.integers(lowest, highest, (3, 300, 515), "uint16", endpoint=True)
    images[:, 40:90, 20:290] = highest
    check(cupy, images, gaussian(sigma))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_clipped_results_are_counted(cupy, dtype):
    images, clipped = random_images((3, 137, 301), dtype), cupy.full(1, 7, "uint64")
    terms = [(np.array([2.0, 1.0]), np.array([1.5, -1.0, 0.5]))]
    separable_on_device(cupy.asarray(images), terms, clipped=clipped)
    limits, rounded = np.iinfo(dtype), np.rint(separable_by_definition(images, terms))
    expected = np.count_nonzero((rounded < limits.min) | (rounded > limits.max))
    assert expected > 1000
    assert abs(int(clipped[0]) - 7 - expected) <= expected // 1000  # those at rounding's edge


def test_nan_and_infinity_stay_within_their_footprint(cupy):
    images, ones = random_images((1, 130, 300), "float32"), (np.ones(5), np.ones(7))
    images[0, 12, 70], images[0, 125, 127] = np.nan, np.inf
    result = separable_on_device(cupy.asarray(images), [ones]).get()
    reached = np.zeros((130, 300), bool)
    for y, x in ((12, 70), (125, 127)):
        reached[y - 2 : y + 3, x - 3 : x + 4] = True
    np.testing.assert_array_equal(~np.isfinite(result[0]), reached)


@pytest.mark.parametrize("taps", [(9, 9), (33, 33), (65, 65), (101, 5)])
def test_every_result_is_written_and_nothing_else(cupy, taps):
    assert_all_is_written(cupy, partial(separable_on_device, terms=random_terms(taps)))


@pytest.mark.parametrize(
    "tuning",
    [
        {"LANE_COLUMNS": 2},
        {"LANE_COLUMNS": 1, "ROW_SUMS": 4},
        {"LANE_COLUMNS": 1},
        {"ROW_SUMS": 4},
        {"WARPS": 1},
        {"WARPS": 8, "BLOCKS": 1},
        {"TOGETHER": 1},
        {"TOGETHER": 2},
        {"BLOCK_ROWS": 17},
        {"BLOCK_ROWS": 200},
        {"ROW_PARTS": 2},
    ],
    ids=str,
)
def test_every_tuning_gives_the_same(cupy, tuning):
    check(cupy, random_images((2, 200, 301), "float32"), random_terms((17, 19), 2), tuning=tuning)


@pytest.mark.parametrize("dtype", TYPES)
def test_arrays_that_begin_off_a_16_byte_boundary(cupy, dtype):
    images, terms = random_images((2, 60, 256), dtype), random_terms((4, 5))
    both = []
    for content in (images.ravel(), np.zeros(images.size, dtype)):
        buffer = cupy.empty(images.size + 1, dtype)
        buffer[1:] = cupy.asarray(content)
        both.append(buffer[1:].reshape(images.shape))
    assert_separable(separable_on_device(both[0], terms, out=both[1]).get(), images, terms)


def test_a_stack_beyond_two_to_the_31_elements(cupy):
    side, count = 1024, 2100  # 2.2e9 elements
    images = cupy.zeros((count, side, side), "uint8")
    images[-1, -1, -1] = 200
    half = np.zeros(17)
    half[8] = 0.5
    result = separable_on_device(images, [(half, 2 * half)])
    assert int(result[-1, -1, -1]) == 100
    assert int(cupy.count_nonzero(result)) == 1
