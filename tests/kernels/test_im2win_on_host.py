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
from xcorr_app.gpu.im2win_launch import ABLATION, STEPS, TILES
from xcorr_app.gpu.im2win_problem import LAYERS, Im2winProblem

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


def random_problem(seed):
    """Any sizes, odd ones among them; small enough for the host."""
    rng = np.random.default_rng(seed)
    images, channels, filter_height, filter_width, stride = (int(x) for x in rng.integers(1, 6, 5))
    height, width = filter_height + int(rng.integers(0, 14)), filter_width + int(rng.integers(0, 20))
    return Im2winProblem(images, channels, height, width, int(rng.integers(1, 80)), filter_height, filter_width, stride)


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


@pytest.mark.parametrize("basic_rows", [0, 4])
@pytest.mark.parametrize("name", PROBLEMS)
def test_both_forms_equal_the_definition(host_builds, name, basic_rows):
    problem = PROBLEMS[name]
    images, filters = integers(problem)
    output = convolve_on_host(host_builds, images, filters, problem, basic_rows=basic_rows)
    np.testing.assert_array_equal(output, convolution_by_definition(images, filters, problem))


@pytest.mark.parametrize("seed", range(12))
def test_random_shapes_equal_the_definition(host_builds, seed):
    problem = random_problem(seed)
    images, filters = integers(problem)
    output = convolve_on_host(host_builds, images, filters, problem)
    np.testing.assert_array_equal(output, convolution_by_definition(images, filters, problem))


@pytest.mark.parametrize("number", LAYERS)
def test_a_small_version_of_each_layer(host_builds, number):
    problem = scaled_down(LAYERS[number])
    images, filters = integers(problem)
    output = convolve_on_host(host_builds, images, filters, problem)
    np.testing.assert_array_equal(output, convolution_by_definition(images, filters, problem))


TUNINGS = {
    **ABLATION,
    **STEPS,
    **{f"{m} x {n} warps": {"WARPS_M": m, "WARPS_N": n} for m, n in TILES},
    "tall lanes, deep tiles": {"LANES_M": 8, "TILE_K": 16, "WARPS_M": 1, "WARPS_N": 3, "MICRO_M": 4},
    "copies of uneven tiles": {"LANES_M": 1, "TILE_K": 4, "WARPS_M": 3, "WARPS_N": 1, "MICRO_M": 4, "MICRO_N": 4},
    "scalars, no buffer": {"VECTOR": 1, "MICRO_M": 3, "MICRO_N": 5, "LANES_M": 4, "BUFFERS": 1, "PREFETCH": 0},
}
TUNINGS["scalars, no buffer"] |= {"WARPS_M": 1, "WARPS_N": 1}


@pytest.mark.parametrize("name", TUNINGS)
def test_every_tile_and_step_gives_the_same_bits(host_builds, name):
    problem = Im2winProblem(3, 5, 12, 15, 45, 3, 3)
    rng = np.random.default_rng(7)
    images = rng.normal(size=(3, 5, 12, 15)).astype(np.float32)
    filters = rng.normal(size=(45, 5, 3, 3)).astype(np.float32)
    basic = convolve_on_host(host_builds, images, filters, problem, basic_rows=32)
    products = convolution_by_definition(np.abs(images), np.abs(filters), problem)
    errors = np.abs(basic - convolution_by_definition(images, filters, problem))
    assert (errors <= problem.depth * 2.0**-24 * products).all()
    output = convolve_on_host(host_builds, images, filters, problem, tuning=TUNINGS[name])
    np.testing.assert_array_equal(output, basic)


def test_what_is_not_finite_stays_in_its_windows(host_builds):
    problem = Im2winProblem(2, 3, 9, 11, 5, 3, 3)
    images, filters = integers(problem)
    expected = convolution_by_definition(images, filters, problem)
    images[1, 2, 4, 5] = np.nan
    output = convolve_on_host(host_builds, images, filters, problem)
    touched = np.zeros(problem.out_shape, bool)
    touched[1, :, 2:5, 3:6] = True
    assert np.isnan(output[touched]).all()
    np.testing.assert_array_equal(output[~touched], expected[~touched])
