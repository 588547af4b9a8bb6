"""The device's Im2win entry without a device: NumPy in CuPy's place, the kernels' own source run on the host."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from tests.kernels.im2win_definition import convolution_by_definition, integers
from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.gpu import im2win_run
from xcorr_app.gpu.im2win_problem import Im2winProblem
from xcorr_app.gpu.launch import DeviceLimits, Launch

PROBLEM = Im2winProblem(7, 2, 9, 12, 5, 3, 2, 2)


@pytest.fixture
def started(host_builds, monkeypatch):
    """Names of the kernels that were started, in order."""
    names = []

    def kernel_function(name, defines, shared_bytes):
        def start(grid, block, arguments, shared_mem):
            assert shared_mem == shared_bytes
            names.append(name.rsplit("/", 1)[-1])
            launch = Launch(name, defines, *grid, *block, shared_mem)
            run_kernel(host_builds, launch, arguments[:-8], arguments[-8:])

        return start

    monkeypatch.setitem(sys.modules, "cupy", np)
    monkeypatch.setattr(im2win_run, "kernel_function", kernel_function)
    monkeypatch.setattr(im2win_run, "device_limits", DeviceLimits)
    return names


@pytest.mark.parametrize("form", ["tiled", "basic"])
@pytest.mark.parametrize(("images_at_once", "parts"), [(7, 1), (3, 3), (0, 7)])
def test_parts_make_the_whole(started, form, images_at_once, parts):
    images, filters = integers(PROBLEM)
    of_one = 4 * PROBLEM.window_elements // PROBLEM.images
    out = guarded(np.full(PROBLEM.out_shape, np.nan, np.float32))
    options = {"form": form, "window_bytes": images_at_once * of_one, "out": out}
    assert im2win_run.im2win_on_device(images, filters, PROBLEM.stride, **options) is out
    assert guards_are_whole(out)
    np.testing.assert_array_equal(out, convolution_by_definition(images, filters, PROBLEM))
    convolution = "im2win_convolve" if form == "tiled" else "im2win_basic"
    assert started == ["im2win_transform", convolution] * parts


def test_views_and_a_new_output(started):
    images, filters = integers(PROBLEM)
    views = np.repeat(images, 2, 3)[..., ::2], np.repeat(filters, 2, 0)[::2]
    output = im2win_run.im2win_on_device(*views, PROBLEM.stride, vector=1)
    assert output.dtype == np.float32
    np.testing.assert_array_equal(output, convolution_by_definition(images, filters, PROBLEM))
    assert len(started) == 2


def test_what_does_not_belong_together_is_refused(started):
    images, filters = integers(PROBLEM)
    with pytest.raises(ShapeError, match="as many channels"):
        im2win_run.im2win_on_device(images, filters[:, :1])
    with pytest.raises(ShapeError, match="as many channels"):
        im2win_run.im2win_on_device(images[0], filters)
    with pytest.raises(DataTypeError, match="float32"):
        im2win_run.im2win_on_device(images.astype("float64"), filters)
    with pytest.raises(ArgumentError, match="tiled or basic"):
        im2win_run.im2win_on_device(images, filters, form="fast")
    with pytest.raises(ShapeError, match="out must be"):
        im2win_run.im2win_on_device(images, filters, out=np.empty((7, 5, 7, 11), "float32")[..., ::-1])
    assert not started
