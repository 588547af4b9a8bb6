"""Arrays in, arrays out: the callers of the sliding sums, with NumPy's arrays and the kernels' source on the host."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from tests.kernels import binding
from tests.kernels.binding import bind_without_device
from tests.kernels.filter_definition import random_images
from tests.kernels.host_device import run_kernel
from tests.kernels.sliding_definition import assert_smoothed, gaussian_by_definition
from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.stencil import sliding as sliding_launch
from xcorr_app.gpu.stencil import sliding_run
from xcorr_app.gpu.stencil.sliding import SLIDING_BOUNDARIES
from xcorr_app.gpu.stencil.sliding_run import sliding_gaussian_on_device


@pytest.fixture
def host(monkeypatch, host_builds):
    """A device whose arrays are NumPy's; the launches that it ran."""
    device = SimpleNamespace(ran=[])
    cupy = SimpleNamespace(empty=np.empty, ascontiguousarray=np.ascontiguousarray, asarray=np.asarray)
    cupy.cuda = SimpleNamespace(Device=lambda: device)

    def kernel_function(kernel, defines, shared_bytes):
        def start(grid, block, arguments, shared_mem):
            assert shared_mem == shared_bytes
            images, results, clipped, weights, first, outside, series, *numbers = arguments
            assert all(isinstance(number, np.int32) for number in numbers)
            if not isinstance(clipped, np.ndarray):  # the null pointer, as a number
                clipped = SimpleNamespace(ctypes=SimpleNamespace(data=int(clipped)))
            launch = SimpleNamespace(kernel=kernel, entry="sliding", defines=defines, shared_bytes=shared_bytes)
            launch.blocks, launch.threads = grid[0], block[0]
            run_kernel(host_builds, launch, (images, results, clipped, weights, first, outside, series), numbers)
            device.ran.append(launch)

        return start

    sliding_run._bound_parts.cache_clear()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    bind_without_device(monkeypatch, kernel_function)
    monkeypatch.setattr(sliding_run, "current_device", lambda: 0)
    monkeypatch.setattr(sliding_run, "device_limits", lambda _: DeviceLimits())
    yield device
    binding.forget()
    sliding_run._bound_parts.cache_clear()


@pytest.mark.parametrize("shape", [(50, 37), (3, 50, 37), (2, 2, 33, 64)])
@pytest.mark.parametrize("boundary", SLIDING_BOUNDARIES)
def test_stacks_of_any_number_of_axes(host, shape, boundary):
    """Another sigma for each axis, so that none is taken for the other."""
    images = random_images(shape, "float32")
    result = sliding_gaussian_on_device(images, 3.0, 9.0, boundary=boundary, outside=0.5)
    assert_smoothed(result, gaussian_by_definition(images, (3.0, 9.0), boundary, 0.5), 1)
    assert len(host.ran) == 2


@pytest.mark.parametrize("sigma", [(4.0, 0.0), (0.0, 4.0)])
@pytest.mark.parametrize("shape", [(2, 40, 35), (1, 1, 60), (1, 60, 1)])
def test_an_axis_without_a_filter_stays_as_it_is(host, sigma, shape):
    images = random_images(shape, "uint8")
    kept = images.copy()
    expected = gaussian_by_definition(images, sigma)
    result = sliding_gaussian_on_device(images, *sigma, dtype="float32")
    assert_smoothed(result, expected, 255)
    np.testing.assert_array_equal(images, kept)
    assert sliding_gaussian_on_device(images, *sigma, out=images) is images
    assert_smoothed(images, expected, 255)
    assert len(host.ran) == 2


def test_parts_that_fit_the_memory_and_launches_that_fit_a_grid(host, monkeypatch):
    images = random_images((5, 40, 35), "float32")
    expected = gaussian_by_definition(images, 3.0)
    monkeypatch.setattr(sliding_run, "BETWEEN_BYTES", 2 * 40 * 35 * 4)
    assert_smoothed(sliding_gaussian_on_device(images, 3.0, 3.0), expected, 1)
    assert len(host.ran) == 2 * 3
    monkeypatch.setattr(sliding_launch, "_LARGEST_INDEX", 2 * 2 * 2 * 32)  # two images of two strips in two segments
    monkeypatch.setattr(sliding_run, "BETWEEN_BYTES", 2**30)
    sliding_run._bound_parts.cache_clear()
    assert_smoothed(sliding_gaussian_on_device(images, 3.0, 3.0), expected, 1)
    assert len(host.ran) > 6 + 2 * 2


@pytest.mark.usefixtures("host")
def test_images_that_are_not_dense_and_a_given_result():
    images = random_images((2, 80, 105), "float32")[:, ::-2, 1::3]
    out = np.full(images.shape, np.nan, "float32")
    assert sliding_gaussian_on_device(images, 2.0, 5.0, out=out) is out
    assert_smoothed(out, gaussian_by_definition(images, (2.0, 5.0)), 1)


@pytest.mark.usefixtures("host")
def test_what_is_not_finite_stays_within_its_rectangle():
    images = random_images((1, 70, 80), "float32")
    images[0, 30, 40] = np.nan
    result = sliding_gaussian_on_device(images, 2.0, 3.0)[0]
    reached = np.zeros((70, 80), bool)
    reached[22:39, 28:53] = True
    np.testing.assert_array_equal(np.isnan(result), reached)
    images[0, 30, 40] = 0
    assert_smoothed(result[~reached], gaussian_by_definition(images, (2.0, 3.0))[0][~reached], 1)


@pytest.mark.usefixtures("host")
def test_what_does_not_fit_is_refused():
    images = np.zeros((2, 9, 9), "float32")
    with pytest.raises(ShapeError, match="two axes"):
        sliding_gaussian_on_device(images[0, 0], 2, 2)
    with pytest.raises(ShapeError, match="dense float32 array"):
        sliding_gaussian_on_device(images, 2, 2, out=np.empty((2, 9, 8), "float32"))
    with pytest.raises(DataTypeError, match="int32"):
        sliding_gaussian_on_device(images.astype("int32"), 2, 2)
    with pytest.raises(ArgumentError, match="neither axis"):
        sliding_gaussian_on_device(images, 0, 0)
    with pytest.raises(ArgumentError, match="with the taps themselves"):
        sliding_gaussian_on_device(images, 2, 1)
    with pytest.raises(ArgumentError, match="auto, double or float"):
        sliding_gaussian_on_device(images, 2, 2, sums="half")
    with pytest.raises(ArgumentError, match="unknown boundary"):
        sliding_gaussian_on_device(images, 2, 2, boundary="valid")
    with pytest.raises(ShapeError, match="pixels a side"):
        sliding_gaussian_on_device(images[:0], 2, 2)
