"""The Im2win kernels' own source, run on the host in lock-step, against the definition in float64."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.im2win_definition import (
    convolution_by_definition,
    convolve_on_host,
    integers,
    transform_on_host,
    window_tensor_by_definition,
)
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.im2win.options import ABLATION, STEPS, Im2winOptions
from xcorr_app.gpu.im2win.problem import LAYERS, Im2winProblem

PROBLEMS = {
    "one element": Im2winProblem(1, 1, 1, 1, 1, 1, 1),
    "planes of one element, rows of many images": Im2winProblem(70, 3, 3, 5, 9, 3, 5),
    "an odd plane": Im2winProblem(3, 2, 11, 13, 35, 3, 3),
    "a plane of whole vectors": Im2winProblem(2, 3, 10, 14, 33, 3, 3),
    "flat filters": Im2winProblem(2, 3, 7, 40, 5, 1, 7),
    "high filters": Im2winProblem(2, 3, 40, 7, 5, 7, 1),
    "a stride that leaves pixels out": Im2winProblem(2, 2, 17, 23, 4, 2, 3, 5),
    "pointwise": Im2winProblem(2, 19, 5, 9, 6, 1, 1),
    "even filters as large as the image's width": Im2winProblem(2, 1, 9, 6, 3, 4, 6, 2),
}


def scaled_down(layer):
    """A layer with fewer images, channels and filters, on smaller images; odd remainders everywhere."""
    size, channels = layer.filter_height + 3 * layer.stride + 1, min(layer.channels, 5)
    filters = layer.filters // 8 + 3
    return Im2winProblem(3, channels, size, size + 2, filters, layer.filter_height, layer.filter_width, layer.stride)


@pytest.mark.parametrize("vector", [4, 1])
@pytest.mark.parametrize("name", PROBLEMS)
def test_window_tensor_equals_the_definition(host_builds, name, vector):
    problem = PROBLEMS[name]
    images, _ = integers(problem)
    window = transform_on_host(host_builds, images, problem, vector)
    np.testing.assert_array_equal(window, window_tensor_by_definition(images, problem))


FORMS = {
    "basic": {"basic_rows": 4},
    "implicit-basic": {"basic_rows": 4, "implicit": True},
    "tiled": {},
    "implicit": {"implicit": True},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_all_forms_equal_the_definition(host_builds, name, form):
    problem = PROBLEMS[name]
    images, filters = integers(problem)
    output = convolve_on_host(host_builds, images, filters, problem, **FORMS[form])
    np.testing.assert_array_equal(output, convolution_by_definition(images, filters, problem))


@pytest.mark.parametrize("implicit", [False, True])
@pytest.mark.parametrize("number", LAYERS)
def test_a_small_version_of_each_layer(host_builds, number, implicit):
    problem = scaled_down(LAYERS[number])
    images, filters = integers(problem)
    output = convolve_on_host(host_builds, images, filters, problem, implicit=implicit)
    np.testing.assert_array_equal(output, convolution_by_definition(images, filters, problem))


OPTIONS = {
    **ABLATION,
    **STEPS,
    "a tile of its own": Im2winOptions(tile_filters=96, tile_depth=15),
    "another": Im2winOptions(tile_columns=64, tile_depth=12, vector_loads=False),
}


@pytest.mark.parametrize("implicit", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
def test_every_step_can_be_left_out(host_builds, name, implicit):
    problem = PROBLEMS["an odd plane"]
    images, filters = integers(problem)
    output = convolve_on_host(host_builds, images, filters, problem, implicit=implicit, tuning=OPTIONS[name].tuning())
    np.testing.assert_array_equal(output, convolution_by_definition(images, filters, problem))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"tile_filters": 48}, "takes 32, 64, 96, 128"),
        ({"tile_columns": 64.0}, "takes 64, 128, 256"),
        ({"tile_depth": 7}, "takes 8, 9, 10, 12, 15, 16"),
        ({"micro_kernel": False, "tile_filters": 32}, "a block's tile is 32 x 32"),
    ],
)
def test_options_that_there_are_not_are_refused(wrong, words):
    with pytest.raises(ArgumentError, match=words):
        Im2winOptions(**wrong)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("implicit", [False, True])
def test_what_is_not_finite_stays_in_its_windows(host_builds, implicit, bad):
    problem = Im2winProblem(2, 3, 9, 11, 5, 3, 3)
    images, filters = integers(problem)
    filters = np.abs(filters) + 1
    images[1, 0, 4, 5] = bad
    tuning = {"TILE_K": 8}  # whose last tile reaches beyond K: infinity must not meet a zero there
    output = convolve_on_host(host_builds, images, filters, problem, implicit=implicit, tuning=tuning)
    touched = np.zeros(problem.out_shape, bool)
    touched[1, :, 2:5, 3:6] = True
    np.testing.assert_array_equal(output[touched], bad)
    images[1, 0, 4, 5] = 0
    expected = convolution_by_definition(images, filters, problem)
    np.testing.assert_array_equal(output[~touched], expected[~touched])
