"""The device's Im2win entry without a device: NumPy in CuPy's place, the kernels' own source run on the host."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.host_device import guarded, guards_are_whole
from tests.kernels.im2win_definition import convolution_by_definition, integers, start_on_host
from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.gpu.im2win import run as im2win_run
from xcorr_app.gpu.im2win.problem import Im2winProblem

PROBLEM = Im2winProblem(7, 2, 9, 12, 5, 3, 2, 2)


@pytest.fixture
def started(host_builds, monkeypatch):
    """Names of the kernels that were started, in order."""
    names = []
    start_on_host(host_builds, monkeypatch, names)
    return names


KERNELS = {
    "im2win": ["im2win_transform", "im2win_convolve"],
    "im2win-basic": ["im2win_transform", "im2win_basic"],
}


@pytest.mark.parametrize("form", KERNELS)
@pytest.mark.parametrize(("images_at_once", "parts"), [(7, 1), (3, 3), (0, 7)])
def test_parts_make_the_whole(started, form, images_at_once, parts):
    images, filters = integers(PROBLEM)
    of_one = 4 * PROBLEM.window_elements // PROBLEM.images
    out = guarded(np.full(PROBLEM.out_shape, np.nan, np.float32))
    options = {"form": form, "window_bytes": images_at_once * of_one, "out": out}
    assert im2win_run.im2win_on_device(images, filters, PROBLEM.stride, **options) is out
    assert guards_are_whole(out)
    np.testing.assert_array_equal(out, convolution_by_definition(images, filters, PROBLEM))
    assert started == ["im2win_filters", *KERNELS[form] * parts]


def test_what_does_not_belong_together_is_refused(started):
    images, filters = integers(PROBLEM)
    with pytest.raises(ShapeError, match="as many channels"):
        im2win_run.im2win_on_device(images, filters[:, :1])
    with pytest.raises(ShapeError, match="as many channels"):
        im2win_run.im2win_on_device(images[0], filters)
    with pytest.raises(DataTypeError, match="float32"):
        im2win_run.im2win_on_device(images.astype("float64"), filters)
    with pytest.raises(ArgumentError, match="auto, im2win, im2win-basic, implicit-basic, implicit"):
        im2win_run.im2win_on_device(images, filters, form="fast")
    with pytest.raises(ShapeError, match="out must be"):
        im2win_run.im2win_on_device(images, filters, out=np.empty((7, 5, 7, 11), "float32")[..., ::-1])
    assert not started
