"""Arrays in, arrays out: the caller of the pointwise kernels, on NumPy's arrays and the kernels' source on the host."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from tests.kernels import binding
from tests.kernels.binding import bind_without_device
from tests.kernels.host_device import run_kernel
from tests.kernels.pointwise_definition import assert_mixed, random_matrix, random_stack
from xcorr_app import unmix
from xcorr_app.errors import ArgumentError, DataTypeError, DeviceError, ShapeError
from xcorr_app.filtering import kernel_names
from xcorr_app.filtering import unmix as unmix_module
from xcorr_app.filtering.unmix import unmix_counted
from xcorr_app.gpu.pointwise import kernels as pointwise_launch
from xcorr_app.gpu.pointwise import run as pointwise_run
from xcorr_app.gpu.pointwise.run import COUNTERS, pointwise_on_device
from xcorr_app.gpu.pointwise.tiles import stored_matrix
from xcorr_app.gpu.runtime.device import DeviceStatus
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES


class HostArray(np.ndarray):
    """NumPy's array with the address where CuPy keeps it."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)


def forget():
    """Forget what was prepared for the stand-in."""
    pointwise_run._bound_parts.cache_clear()
    pointwise_run._kept_launches.cache_clear()


@pytest.fixture
def host(monkeypatch, host_builds):
    """A device whose arrays are NumPy's; the list of the launches that it ran."""
    ran = []

    def kernel_function(kernel, defines, shared_bytes=0):
        def start(grid, block, arguments, shared_mem=0):
            launch = SimpleNamespace(
                kernel=kernel,
                entry=kernel.rsplit("/", 1)[-1],
                defines=defines,
                blocks=grid[0],
                threads=block[0],
                shared_bytes=shared_mem,
            )
            assert shared_mem == shared_bytes
            arrays = [np.asarray(argument) for argument in arguments if isinstance(argument, np.ndarray)]
            numbers = arguments[len(arrays) :]
            assert all(isinstance(number, np.int32) for number in numbers)
            run_kernel(host_builds, launch, arrays, numbers)
            ran.append(launch)

        return start

    def array(function):
        return lambda *arguments, **options: function(*arguments, **options).view(HostArray)

    namespace = SimpleNamespace(
        ascontiguousarray=array(np.ascontiguousarray), empty=array(np.empty), zeros=array(np.zeros), float32=np.float32
    )
    namespace.asarray = array(np.asarray)
    monkeypatch.setattr(pointwise_run, "finish_copies", lambda: None)
    forget()
    monkeypatch.setitem(sys.modules, "cupy", namespace)
    bind_without_device(monkeypatch, kernel_function)
    monkeypatch.setattr(pointwise_run, "current_device", lambda: 0)
    monkeypatch.setattr(pointwise_run, "device_limits", lambda _: KNOWN_DEVICES["h200"])
    yield ran
    binding.forget()
    forget()


@pytest.mark.parametrize(("shape", "axis"), [((3, 40), 0), ((5, 7, 3), -1), ((2, 3, 9, 8), 1), ((2, 2, 3, 9, 8), -3)])
def test_stacks_of_any_number_of_axes(host, shape, axis):
    stack, matrix = random_stack(shape, "float32"), random_matrix(4, 3)
    assert_mixed(pointwise_on_device(stack, matrix, axis), stack, matrix, axis)
    assert len(host) == 1


def test_a_stack_in_several_launches(host, monkeypatch):
    monkeypatch.setattr(pointwise_launch, "_MAX_PIXELS", 2 * 70)
    stack, matrix = random_stack((5, 3, 7, 10), "uint16"), random_matrix(3, 3)
    clipped = np.zeros(COUNTERS, np.uint64)
    result = pointwise_on_device(stack, matrix, 1, clipped=clipped)
    assert len(host) == 3
    assert_mixed(result, stack, matrix, 1, exact=True, counted=int(clipped.sum()))


@pytest.mark.usefixtures("host")
def test_a_stack_that_is_not_dense_and_a_given_result():
    stack, matrix = random_stack((6, 10, 24), "float32")[::2, :, 1::3], random_matrix(2, 3)
    out = np.full((2, 10, 8), np.nan, "float32").view(HostArray)
    assert pointwise_on_device(stack, matrix, out=out) is out
    assert_mixed(out, stack, matrix, 0)


@pytest.mark.parametrize("kernel", ["mix", "mix_split", "shallow", "blocking", "tiled"])
@pytest.mark.parametrize("white", [None, 90.0])
@pytest.mark.usefixtures("host")
def test_a_matrix_that_was_stored_before(kernel, white):
    if kernel == "tiled" and white:
        return
    stack, matrix = random_stack((2, 9, 40), "float32"), random_matrix(5, 9)
    stored = stored_matrix(matrix, np, density=white is not None)
    found = pointwise_on_device(stack, stored, 1, kernel=kernel, log_white=white)
    assert_mixed(found, stack, matrix, 1, white=white)
    if white is None:
        np.testing.assert_array_equal(pointwise_on_device(stack, matrix, 1, kernel=kernel), found)
    with pytest.raises(ArgumentError, match="stored for the other case"):
        pointwise_on_device(stack, stored, 1, log_white=None if white else 1.0)


@pytest.mark.usefixtures("host")
def test_what_does_not_fit_is_refused():
    stack = np.zeros((3, 4, 8), "float32")
    with pytest.raises(ShapeError, match="as many columns"):
        pointwise_on_device(stack, np.eye(2))
    with pytest.raises(ShapeError, match="as many columns"):
        pointwise_on_device(stack, np.eye(3), 5)
    with pytest.raises(ShapeError, match="dense float32 array"):
        pointwise_on_device(stack, np.eye(3), out=np.empty((3, 4, 9), "float32").view(HostArray))
    with pytest.raises(ShapeError, match="counters of uint64"):
        pointwise_on_device(stack, np.eye(3), clipped=np.zeros(1, np.uint64))
    with pytest.raises(DataTypeError, match="int32"):
        pointwise_on_device(stack.astype("int32"), np.eye(3))
    with pytest.raises(ArgumentError, match="unknown pointwise kernel"):
        pointwise_on_device(stack, np.eye(3), kernel="fast")
    with pytest.raises(ArgumentError, match="1 to 4096"):
        pointwise_on_device(np.zeros((4097, 2), "float32"), np.ones((1, 4097)), 0)


@pytest.fixture
def on_device(host, monkeypatch):
    """Makes `unmix` take host arrays for arrays of the device."""
    namespace = sys.modules["cupy"]
    monkeypatch.setattr(unmix_module, "array_namespace", lambda _: namespace)
    monkeypatch.setattr(unmix_module, "is_device_array", lambda x: isinstance(x, HostArray))
    monkeypatch.setattr(unmix_module, "current_device", lambda: 0)
    monkeypatch.setattr(unmix_module, "device_limits", lambda _: KNOWN_DEVICES["h200"])
    return host


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
@pytest.mark.parametrize("options", [{}, {"clip": True}, {"from_log": True}, {"dtype": "float32"}], ids=str)
def test_unmix_gives_the_answer_of_the_cpu(on_device, dtype, options):
    stack, matrix = random_stack((2, 4, 6, 9), dtype), random_matrix(3, 4)
    expected, number = unmix_counted(stack, matrix, **options)
    result, counted = unmix_counted(stack.view(HostArray), matrix, **options)
    again = unmix(stack.view(HostArray), matrix, **options)
    assert len(on_device) == 2
    assert (result.dtype, counted) == (expected.dtype, number)
    np.testing.assert_array_equal(again, result)
    if result.dtype.kind == "f":
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=2e-6 * max(1, np.abs(expected).max()))
    else:
        np.testing.assert_array_equal(result, expected)


def test_what_a_kernel_by_name_does_not_mix_is_refused(on_device, monkeypatch):
    stack = random_stack((40, 8, 12), "uint16").view(HostArray)
    for kernel, message in (("mix", "up to 32 channels"), ("tiled", "multiplies float32 alone")):
        with pytest.raises(ArgumentError, match=f"{message}.*use 'auto'"):
            unmix(stack, np.eye(40), dtype="float32", kernel=kernel)
    with pytest.raises(ArgumentError, match="no kernel mixes 3 channels of float64"):
        unmix(random_stack((3, 8, 12), "float64").view(HostArray), np.eye(3), kernel="mix")
    with pytest.raises(ArgumentError, match="auto, mix, mix_bytes"):
        unmix(stack, np.eye(40), kernel="gemm")
    monkeypatch.setattr(kernel_names, "cuda_status", lambda: DeviceStatus(available=False, reason="no driver"))
    with pytest.raises(DeviceError, match="'shallow' runs on a GPU"):
        unmix(np.ones((3, 8, 12), np.float32), np.eye(3), kernel="shallow")
    assert not on_device


def test_more_channels_than_the_kernels_mix_are_left_to_the_matrix_product():
    types = np.dtype("uint16"), np.dtype("float32")
    assert unmix_module.has_kernel(*types, (3, 4096), 1000)
    assert not unmix_module.has_kernel(*types, (3, 4097), 1000)
