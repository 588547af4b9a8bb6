"""Im2win's kernels and those of banks, run on the host in lock-step, against the definition in float64."""

import numpy as np
import pytest

from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from tests.kernels.im2win_definition import (
    convolution_by_definition,
    convolve_on_host,
    integers,
    start_on_host,
    transform_on_host,
    window_tensor_by_definition,
)
from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.filtering.boundary import padded
from xcorr_app.gpu.im2win.bank import BankPart, BankProblem, pad_launch
from xcorr_app.gpu.im2win.bank_run import KernelBank, bank_on_device
from xcorr_app.gpu.im2win.options import ABLATION, STEPS, Im2winOptions
from xcorr_app.gpu.im2win.problem import LAYERS, Im2winProblem, stored_filters
from xcorr_app.gpu.im2win.run import bound_form
from xcorr_app.gpu.runtime import memory
from xcorr_app.gpu.stencil.problem import BOUNDARIES

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


@pytest.mark.parametrize("name", PROBLEMS)
def test_window_tensor_equals_the_definition(host_builds, name):
    problem = PROBLEMS[name]
    images, _ = integers(problem)
    window = transform_on_host(host_builds, images, problem)
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


PROBLEM = Im2winProblem(7, 2, 9, 12, 5, 3, 2, 2)


@pytest.fixture
def started(host_builds, monkeypatch):
    """Names of the kernels that were started, in order."""
    names = []
    start_on_host(host_builds, monkeypatch, names)
    monkeypatch.setattr(memory, "release_unused", lambda: None)
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
    bound_form(form, PROBLEM, stored_filters(filters), window_bytes=images_at_once * of_one)(images, out)
    assert guards_are_whole(out)
    np.testing.assert_array_equal(out, convolution_by_definition(images, filters, PROBLEM))
    assert started == KERNELS[form] * parts


def small_integers(shape, seed=5):
    return np.random.default_rng(seed).integers(-9, 10, shape)


def padded_by_definition(images, problem, outside=0.0):
    """Every plane in float64, by the padding that the CPU takes."""
    first, size = problem.first, (problem.filter_height, problem.filter_width)
    rows, columns = ((before, taps - 1 - before) for before, taps in zip(first, size, strict=True))
    planes = images.reshape(-1, *images.shape[-2:])
    result = np.stack([padded(plane, rows, columns, problem.boundary, outside, np.float64) for plane in planes])
    return result.reshape(*images.shape[:2], *result.shape[1:])


def by_definition(images, filters, problem, outside=0.0):
    windows = np.lib.stride_tricks.sliding_window_view(
        padded_by_definition(images, problem, outside), filters.shape[2:], (2, 3)
    )
    return np.einsum("iryxuv,jruv->ijyx", windows, filters.astype(np.float64))


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("shape", [(2, 3, 7, 9), (1, 1, 1, 1), (3, 1, 2, 31), (1, 2, 13, 4)])
@pytest.mark.parametrize("size", [(1, 1), (4, 3), (9, 12)])
def test_padding_equals_the_cpus(host_builds, boundary, shape, size):
    if boundary == "valid" and (size[0] > shape[2] or size[1] > shape[3]):
        with pytest.raises(ShapeError, match="filters that fit"):
            BankProblem(*shape, 1, *size, boundary)
        return
    problem = BankProblem(*shape, 1, *size, boundary)
    images = small_integers(shape).astype(np.float32)
    expected = padded_by_definition(images, problem, 2.5)
    rows = problem.result_shape[0]
    for first in range(rows):
        for part in {BankPart(0, shape[0], first, rows - first), BankPart(0, shape[0], first, 1)}:
            band = guarded(np.full((shape[0], *problem.padded_shape(part.rows)), -777, np.float32))
            launch = pad_launch(problem, part, image_type="float32", outside=2.5)
            run_kernel(host_builds, launch, (guarded(images), band), launch.extra)
            assert guards_are_whole(band)
            np.testing.assert_array_equal(band, expected[:, :, first : first + band.shape[2]])
        if first > 2:
            break


def test_what_is_not_finite_becomes_nan(host_builds):
    problem = BankProblem(1, 1, 2, 4, 1, 1, 1)
    images = np.array([[[[1, np.inf, -np.inf, np.nan], [-0.0, 3e38, -3e38, 1e-40]]]], np.float32)
    band = np.zeros((1, 1, 2, 4), np.float32)
    launch = pad_launch(problem, BankPart(0, 1, 0, 2), image_type="float32")
    run_kernel(host_builds, launch, (images, band), launch.extra)
    np.testing.assert_array_equal(band, np.where(np.isfinite(images), images, np.nan))


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("elements", [10**6, 300, 150, 1])
def test_parts_and_bands_make_the_whole(started, boundary, elements):
    images = small_integers((3, 2, 11, 10)).astype(np.uint8)
    filters = small_integers((5, 2, 4, 3), seed=6)
    problem = BankProblem(*images.shape, 5, 4, 3, boundary)
    out = guarded(np.full((3, 5, *problem.result_shape), np.nan, np.float32))
    bank_on_device(images, KernelBank.of(filters), out, boundary=boundary, outside=7, padded_bytes=4 * elements)
    assert guards_are_whole(out)
    np.testing.assert_array_equal(out, by_definition(images, filters, problem, 7))
    parts = list(problem.parts(elements))
    assert started.count("im2win_pad") == started.count("im2win_convolve") == len(parts)
    assert (len(parts) == 1) == (elements == 10**6)
