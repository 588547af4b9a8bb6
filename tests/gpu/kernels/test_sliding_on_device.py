"""Long Gaussians on the device against scipy.ndimage in float64; every type and boundary, sigma 2 to 250."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from tests.device import NEEDS_DEVICE
from tests.kernels.filter_definition import assert_all_is_written, random_images
from tests.kernels.sliding_definition import assert_smoothed, gaussian_by_definition, smoothed_on_device
from xcorr_app.gpu.runtime.types import INPUT_TYPES
from xcorr_app.gpu.stencil import sliding_run
from xcorr_app.gpu.stencil.sliding import SLIDING_BOUNDARIES

pytestmark = NEEDS_DEVICE


def largest_of(images):
    return float(np.abs(images.astype(np.float64)).max())


@pytest.mark.parametrize("boundary", SLIDING_BOUNDARIES)
@pytest.mark.parametrize("sigma", [2.0, 8.0, 64.0, 250.0])
def test_every_boundary_and_length(cupy, sigma, boundary):
    """Images longer and shorter than the window, as wide as a strip, or by one more or less."""
    for shape in ((2, 3, 131, 260), (1, 700, 33), (31, 1000), (2, 9, 20)):
        images = random_images(shape, "float32")
        result = smoothed_on_device(cupy.asarray(images), (sigma, sigma), boundary, outside=0.5).get()
        assert_smoothed(result, gaussian_by_definition(images, sigma, boundary, 0.5), 1)


@pytest.mark.parametrize("dtype", INPUT_TYPES)
@pytest.mark.parametrize("result", ["same", "float32"])
@pytest.mark.parametrize("sigma", [(8.0, 20.0), (64.0, 3.0), (250.0, 16.0)])
def test_every_type(cupy, dtype, result, sigma):
    images, chosen = random_images((3, 200, 301), dtype), None if result == "same" else "float32"
    smooth = smoothed_on_device(cupy.asarray(images), sigma, dtype=chosen).get()
    assert smooth.dtype == (chosen or dtype)
    if smooth.dtype.name in ("uint16", "int16"):
        assert_smoothed(smooth, gaussian_by_definition(images, sigma), 1, 1e-2)
    else:
        assert_smoothed(smooth, gaussian_by_definition(images, sigma), largest_of(images))


def test_what_is_not_finite_stays_within_its_rectangle(cupy):
    images = random_images((2, 300, 200), "float32")
    images[1, 150, 100], images[1, 0, 199] = np.nan, -np.inf
    result = smoothed_on_device(cupy.asarray(images), (8.0, 4.0)).get()
    reached = np.zeros(images.shape, bool)
    reached[1, 118:183, 84:117] = reached[1, :33, 183:] = True
    np.testing.assert_array_equal(np.isnan(result), reached)
    expected = gaussian_by_definition(np.nan_to_num(images, posinf=0, neginf=0), (8.0, 4.0))
    assert_smoothed(result[~reached], expected[~reached], 1)


def test_every_result_is_written_and_nothing_else(cupy):
    images, expected = assert_all_is_written(cupy, partial(smoothed_on_device, sigmas=(4.0, 4.0)))
    assert smoothed_on_device(images, (4.0, 4.0), out=images) is images
    np.testing.assert_array_equal(images.get(), expected.get())


def test_results_that_do_not_fit_are_counted(cupy):
    images = (random_images((3, 90, 110), "float32") * 900).astype("float32")
    clipped = cupy.full(1, 5, cupy.uint64)
    result = smoothed_on_device(cupy.asarray(images), (2.0, 2.0), dtype="uint8", clipped=clipped).get()
    expected = gaussian_by_definition(images, 2.0)
    assert_smoothed(result, expected, 900, 1e-6)
    rounded = np.rint(expected)
    assert int(clipped[0]) == 5 + np.count_nonzero((rounded < 0) | (rounded > 255))
    assert int(clipped[0]) > 1000


def test_images_that_are_not_dense_and_stacks_in_parts(cupy, monkeypatch):
    monkeypatch.setattr(sliding_run, "BETWEEN_BYTES", 2 * 60 * 45 * 4)
    images = random_images((5, 120, 135), "float32")
    result = smoothed_on_device(cupy.asarray(images)[:, ::-2, 1::3], (3.0, 5.0)).get()
    assert_smoothed(result, gaussian_by_definition(images[:, ::-2, 1::3], (3.0, 5.0)), 1)


def test_a_stack_beyond_two_to_the_31_elements(cupy):
    side, count = 1024, 2100  # 2.2e9 elements
    images = cupy.zeros((count, side, side), "uint8")
    images[-1] = 200
    result = smoothed_on_device(images, (16.0, 16.0))
    assert bool((result[-1] == 200).all())
    assert int(cupy.count_nonzero(result)) == side * side
