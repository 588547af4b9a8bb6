"""The device's Im2win entry without a device: NumPy in CuPy's place, the kernels' own source run on the host."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.host_device import guarded, guards_are_whole
from tests.kernels.im2win_definition import convolution_by_definition, integers, start_on_host
from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.gpu.im2win import problem as im2win_problem
from xcorr_app.gpu.im2win import run as im2win_run
from xcorr_app.gpu.im2win import tiles as im2win_tiles
from xcorr_app.gpu.im2win.kernels import form_for
from xcorr_app.gpu.im2win.problem import LAYERS, Im2winProblem

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


@pytest.mark.parametrize(
    ("form", "kernels"),
    [("auto", ["shallow"]), ("shallow", ["shallow"]), ("implicit", ["im2win_filters", "im2win_convolve"])],
)
def test_images_are_read_as_they_are(started, monkeypatch, form, kernels):
    images, filters = integers(PROBLEM)
    expected = convolution_by_definition(images, filters, PROBLEM)
    np.testing.assert_array_equal(im2win_run.im2win_on_device(images, filters, PROBLEM.stride, form=form), expected)
    assert started == kernels
    # Where a launch can address three images, there are three.
    monkeypatch.setattr(im2win_problem, "MAX_ELEMENTS", 3 * PROBLEM.channels * PROBLEM.height * PROBLEM.width)
    np.testing.assert_array_equal(im2win_run.im2win_on_device(images, filters, PROBLEM.stride, form=form), expected)
    assert started == [*kernels, *kernels, kernels[-1], kernels[-1]]


@pytest.mark.parametrize("options", [{"segments": 2}, {"tuning": {"TILE_K": 8}}], ids=str)
def test_options_of_the_high_performance_kernel_choose_it(started, options):
    images, filters = integers(PROBLEM)
    output = im2win_run.im2win_on_device(images, filters, PROBLEM.stride, **options)
    np.testing.assert_array_equal(output, convolution_by_definition(images, filters, PROBLEM))
    assert "shallow" not in started
    im2win_run.im2win_on_device(images, filters, PROBLEM.stride, form="shallow", tuning={"THREADS": 64})
    assert started[-1] == "shallow"


@pytest.mark.parametrize("form", ["im2win", "implicit"])
def test_segments_of_k_are_added(started, monkeypatch, form):
    problem = Im2winProblem(2, 9, 7, 8, 6, 3, 3)
    images, filters = integers(problem)
    options = {"form": form, "segments": 4, "tuning": {"TILE_K": 16}}
    output = im2win_run.im2win_on_device(images, filters, **options)
    np.testing.assert_array_equal(output, convolution_by_definition(images, filters, problem))
    assert started[-2:] == ["im2win_convolve", "add_segments"]
    monkeypatch.setattr(im2win_tiles, "_MAX_WORKSPACE", 0)
    np.testing.assert_array_equal(im2win_run.im2win_on_device(images, filters, **options), output)
    assert started[-2:] == (
        ["add_segments", "im2win_convolve"] if form == "implicit" else ["im2win_convolve", "add_segments"]
    )


def test_the_form_follows_from_depth_stride_and_filter():
    shallow = {number for number, layer in LAYERS.items() if form_for(layer) == "shallow"}
    assert shallow == {7}
    assert {form_for(layer) for number, layer in LAYERS.items() if number != 7} == {"implicit"}
    assert form_for(Im2winProblem(1, 4, 99, 99, 1, 5, 5, 12)) == "im2win"
    assert form_for(Im2winProblem(1, 4, 99, 99, 1, 25, 5, 12)) == "implicit"


def test_views_and_a_new_output(started):
    images, filters = integers(PROBLEM)
    views = np.repeat(images, 2, 3)[..., ::2], np.repeat(filters, 2, 0)[::2]
    output = im2win_run.im2win_on_device(*views, PROBLEM.stride, vector=1)
    assert output.dtype == np.float32
    np.testing.assert_array_equal(output, convolution_by_definition(images, filters, PROBLEM))
    assert started == ["shallow"]


def test_what_does_not_belong_together_is_refused(started):
    images, filters = integers(PROBLEM)
    with pytest.raises(ShapeError, match="as many channels"):
        im2win_run.im2win_on_device(images, filters[:, :1])
    with pytest.raises(ShapeError, match="as many channels"):
        im2win_run.im2win_on_device(images[0], filters)
    with pytest.raises(DataTypeError, match="float32"):
        im2win_run.im2win_on_device(images.astype("float64"), filters)
    with pytest.raises(ArgumentError, match="auto, im2win, im2win-basic, implicit"):
        im2win_run.im2win_on_device(images, filters, form="fast")
    with pytest.raises(ShapeError, match="out must be"):
        im2win_run.im2win_on_device(images, filters, out=np.empty((7, 5, 7, 11), "float32")[..., ::-1])
    assert not started
