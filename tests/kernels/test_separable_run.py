"""Arrays in, arrays out: the caller of the fused pass, with NumPy's arrays and the kernel's source on the host."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import ndimage

from tests.kernels import binding
from tests.kernels.binding import bind_without_device
from tests.kernels.filter_definition import random_images
from tests.kernels.host_device import run_kernel
from tests.kernels.separable_definition import assert_separable, gaussian, random_terms
from xcorr_app.errors import DataTypeError, ShapeError
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES, DeviceLimits
from xcorr_app.gpu.stencil import banded_run, separable_run
from xcorr_app.gpu.stencil import problem as filter_problem


@pytest.fixture
def host(monkeypatch, host_builds):
    """A device whose arrays are NumPy's; the list of the launches that it ran."""
    ran = []

    def kernel_function(kernel, defines, shared_bytes):
        def start(grid, block, arguments, shared_mem):
            assert shared_mem == shared_bytes > 0
            launch = SimpleNamespace(
                kernel=kernel,
                entry=kernel.rsplit("/", 1)[-1],
                defines=defines,
                blocks=grid[0],
                threads=block[0],
                shared_bytes=shared_mem,
            )
            arrays = [argument for argument in arguments if not isinstance(argument, np.int32)]
            assert arguments[: len(arrays)] == tuple(arrays)
            null = SimpleNamespace(ctypes=SimpleNamespace(data=0))  # comes as a number
            arrays = [array if isinstance(array, np.ndarray) else null for array in arrays]
            run_kernel(host_builds, launch, arrays, arguments[len(arrays) :])
            ran.append(launch)

        return start

    def clear():
        separable_run._bound_parts.cache_clear()
        binding.forget()
        banded_run._starts.cache_clear()

    clear()
    monkeypatch.setitem(sys.modules, "cupy", np)
    monkeypatch.setitem(sys.modules, "cupyx.scipy.ndimage", ndimage)
    bind_without_device(monkeypatch, kernel_function)
    for module in (separable_run, banded_run):
        monkeypatch.setattr(module, "current_device", lambda: 0)
        monkeypatch.setattr(module, "device_limits", lambda _: DeviceLimits())
    monkeypatch.setattr(banded_run, "device_limits", lambda _: KNOWN_DEVICES["h200"])
    monkeypatch.setattr(banded_run, "Scratch", lambda array: lambda: (np.full(array[0], 77, array[1]), None))
    yield ran
    clear()


@pytest.mark.parametrize("shape", [(9, 40), (3, 9, 40), (2, 3, 9, 40)])
@pytest.mark.parametrize("boundary", ["mirror", "valid", "constant"])
@pytest.mark.parametrize("count", [1, 2])
def test_stacks_of_any_number_of_axes(host, shape, boundary, count):
    images, terms = random_images(shape, "float32"), random_terms((2, 3), count)
    result = separable_run.separable_on_device(images, terms, boundary=boundary, outside=0.5)
    assert_separable(result, images, terms, boundary, 0.5)
    assert len(host) == 1


def test_a_stack_in_several_launches(host, monkeypatch):
    monkeypatch.setattr(filter_problem, "_LARGEST_INDEX", 2 * 2 * 9 * 32)  # two images of two narrow strips
    images, terms, clipped = random_images((5, 9, 40), "uint16"), random_terms((3, 3)), np.full(1, 7, np.uint64)
    result = separable_run.separable_on_device(images, terms, dtype="float32", clipped=clipped)
    assert_separable(result, images, terms)
    assert len(host) == 3
    assert clipped[0] == 7
    separable_run.separable_on_device(
        np.full_like(images, 40000), [(np.array([2.0]), np.array([1.0]))], clipped=clipped
    )
    assert clipped[0] == 7 + images.size


@pytest.mark.usefixtures("host")
def test_images_that_are_not_dense_and_a_given_result():
    images, terms = random_images((2, 30, 45), "float32")[:, ::2, 1::3], random_terms((2, 3))
    out = np.full(images.shape, np.nan, "float32")
    assert separable_run.separable_on_device(images, terms, origin=(0, 1), out=out) is out
    assert_separable(out, np.ascontiguousarray(images), terms, origin=(0, 1))


@pytest.mark.parametrize("shape", [(9, 40), (2, 3, 9, 40)])
@pytest.mark.parametrize("boundary", ["mirror", "valid", "constant"])
def test_tensor_cores(host, shape, boundary):
    """Two launches: the second leaves all images alone."""
    images, terms = random_images(shape, "float32"), random_terms((2, 3))
    result = separable_run.separable_on_device(images, terms, boundary=boundary, outside=0.5, kernel="banded")
    assert_separable(result, images, terms, boundary, 0.5)
    assert [launch.entry for launch in host] == ["banded", "separable"]
    assert host[1].defines["ONLY_MARKED"] == 1


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("pieces", [1, 3])
def test_tensor_cores_leave_images_that_are_not_finite_to_the_other_kernel(monkeypatch, pieces):
    if pieces == 3:
        monkeypatch.setattr(filter_problem, "_LARGEST_INDEX", 2 * 2 * 30 * 32)
    images, terms = random_images((5, 30, 40), "float32"), gaussian(1)
    images[3, 12, 20], images[4, 0, 0] = np.nan, np.inf
    result = separable_run.separable_on_device(images, terms, kernel="banded")
    expected = separable_run.separable_on_device(images, terms, kernel="separable")
    np.testing.assert_array_equal(result[3:], expected[3:])
    assert np.isfinite(result[3]).sum() == 30 * 40 - 81
    assert_separable(result[:3], images[:3], terms)


def test_a_stack_without_images(host):
    result = separable_run.separable_on_device(np.empty((0, 9, 9), "uint8"), gaussian(0.5), boundary="valid")
    assert result.shape == (0, 5, 5)
    assert result.dtype == np.uint8
    assert not host


@pytest.mark.parametrize("boundary", ["reflect", "wrap", "constant", "valid"])
@pytest.mark.parametrize("shape", [(130, 3), (2, 131)])
@pytest.mark.parametrize("dtype", ["float32", "uint16", "float64"])
def test_taps_too_long_for_one_pass(host, boundary, shape, dtype):
    images, terms = random_images((2, 140, 150), dtype), random_terms(shape, 2)
    origin = (0, 0) if boundary == "valid" else (-1, 1)
    result = separable_run.separable_on_device(images, terms, boundary=boundary, outside=0.5, origin=origin)
    assert_separable(result, images, terms, boundary, 0.5, origin)
    assert not host


@pytest.mark.usefixtures("host")
def test_what_does_not_fit_is_refused():
    images, ones = np.zeros((2, 9, 9), "float32"), np.ones(3)
    call = separable_run.separable_on_device
    with pytest.raises(ShapeError, match="two axes"):
        call(images[0, 0], [(ones, ones)])
    with pytest.raises(ShapeError, match="two vectors"):
        call(images, [(np.ones((3, 3)), ones)])
    with pytest.raises(ShapeError, match="one or two pairs"):
        call(images, [])
    with pytest.raises(ShapeError, match="columns of one length"):
        call(images, [(ones, ones), (ones[:2], ones)])
    with pytest.raises(ShapeError, match="1 or 2 terms"):
        call(images, [(ones, ones)] * 3)
    with pytest.raises(ShapeError, match="dense float32 array"):
        call(images, [(ones, ones)], out=np.empty((2, 9, 8), "float32"))
    with pytest.raises(DataTypeError, match="int32"):
        call(images.astype("int32"), [(ones, ones)])
    with pytest.raises(DataTypeError, match="float16"):
        call(images, [(ones, ones)], dtype="float16")
