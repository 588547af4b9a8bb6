"""The filter kernels on the device against scipy.ndimage in float64; outputs poisoned, every type and boundary."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from tests.device import NEEDS_DEVICE
from tests.kernels.filter_definition import (
    TYPES,
    assert_all_is_written,
    assert_filtered,
    filtered_by_definition,
    filtered_on_device,
    random_images,
    random_taps,
)
from xcorr_app.gpu.stencil.problem import BOUNDARIES
from xcorr_app.gpu.stencil.reuse import FILTER_KERNELS

pytestmark = NEEDS_DEVICE

SHAPES = {"reuse": (5, 7), "reuse_wide": (12, 30), "exchange": (6, 11)}


def filtered(cupy, images, taps, **options):
    return filtered_on_device(cupy.asarray(images), taps, **options).get()


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("kernel", FILTER_KERNELS)
def test_every_boundary(cupy, kernel, boundary):
    taps = random_taps(SHAPES[kernel])
    for shape in ((2, 3, 131, 260), (1, 77, 1029)):
        images = random_images(shape, "float32")
        result = filtered(cupy, images, taps, boundary=boundary, outside=0.5, kernel=kernel)
        assert_filtered(result, images, taps, boundary, 0.5)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("result", ["same", "float32"])
@pytest.mark.parametrize("shape", [(3, 3), (9, 9), (21, 22), (31, 31), (63, 63)])
def test_every_type(cupy, dtype, result, shape):
    images, taps = random_images((3, 200, 301), dtype), random_taps(shape)
    chosen = None if result == "same" else "float32"
    assert_filtered(filtered(cupy, images, taps, dtype=chosen), images, taps)


@pytest.mark.parametrize("width", range(1, 64))
def test_every_width_of_a_filter(cupy, width):
    images, taps = random_images((1, 70, 500), "float32"), random_taps((1 + width * 5 % 63, width))
    assert_filtered(filtered(cupy, images, taps), images, taps)


@pytest.mark.parametrize("width", range(1, 64))
def test_the_published_exchange_takes_every_width(cupy, width):
    images, taps = random_images((2, 71, 301), "uint16"), random_taps((1 + width * 5 % 63, width))
    result = filtered(cupy, images, taps, kernel="exchange", dtype="float32")
    assert_filtered(result, images, taps)


@pytest.mark.parametrize("kernel", FILTER_KERNELS)
def test_every_result_is_written_and_nothing_else(cupy, kernel):
    assert_all_is_written(cupy, partial(filtered_on_device, taps=random_taps(SHAPES[kernel]), kernel=kernel))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
@pytest.mark.parametrize("kernel", FILTER_KERNELS)
def test_clipped_results_are_counted(cupy, kernel, dtype):
    factor = 30 if dtype == "int16" else 3  # of zero mean: large taps' sums stay small
    images, taps = random_images((3, 77, 261), dtype), factor * random_taps(SHAPES[kernel])
    clipped = cupy.full(1, 2**40, "uint64")
    result = filtered_on_device(cupy.asarray(images), taps, kernel=kernel, double_sums=True, clipped=clipped)
    exact, limits = np.rint(filtered_by_definition(images, taps)), np.iinfo(dtype)
    assert result.dtype == images.dtype
    beyond = np.count_nonzero((exact < limits.min) | (exact > limits.max))
    assert 1000 < beyond < images.size
    assert abs(int(clipped[0]) - 2**40 - beyond) <= 20


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
@pytest.mark.parametrize("shape", [(3, 3), (9, 9), (31, 31)])
def test_sums_in_double_precision(cupy, dtype, shape):
    images, taps = random_images((2, 70, 301), dtype), 5 * random_taps(shape).astype("float64")
    result = filtered(cupy, images, taps, double_sums=True)
    exact = filtered_by_definition(images, taps)
    if dtype == "float32":
        np.testing.assert_allclose(result, exact, rtol=1e-7, atol=1e-12)
        return
    sure = np.abs(exact - np.floor(exact) - 0.5) > 1e-9
    limits = np.iinfo(dtype)
    np.testing.assert_array_equal(result[sure], np.clip(np.rint(exact), limits.min, limits.max)[sure])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kernel", ["reuse", "reuse_wide"])
def test_arrays_that_begin_off_a_16_byte_boundary(cupy, kernel, dtype):
    images, taps = random_images((2, 60, 256), dtype), random_taps((4, 5))
    both = []
    for content in (images.ravel(), np.zeros(images.size, dtype)):
        buffer = cupy.empty(images.size + 1, dtype)
        buffer[1:] = cupy.asarray(content)
        both.append(buffer[1:].reshape(images.shape))
    assert_filtered(filtered_on_device(both[0], taps, kernel=kernel, out=both[1]).get(), images, taps)


@pytest.mark.parametrize("shape", [(3, 3), (31, 31)])
def test_a_stack_beyond_two_to_the_31_elements(cupy, shape):
    side, count = 1024, 2100  # 2.2e9 elements
    images = cupy.zeros((count, side, side), "uint8")
    images[-1, -1, -1] = 200
    taps = np.zeros(shape, "float32")
    taps[shape[0] // 2, shape[1] // 2] = 0.5
    result = filtered_on_device(images, taps)
    assert int(result[-1, -1, -1]) == 100
    assert int(cupy.count_nonzero(result)) == 1
