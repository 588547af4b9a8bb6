"""Im2win on the device against the definition in float64; outputs poisoned, sizes odd, parts, tilings and layers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.im2win_definition import convolution_by_definition, integers
from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.gpu.device import cuda_status
from xcorr_app.gpu.im2win_launch import ABLATION, STEPS
from xcorr_app.gpu.im2win_problem import LAYERS, Im2winProblem
from xcorr_app.gpu.im2win_run import im2win_on_device

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not cuda_status().available, reason=cuda_status().reason or "a device is there"),
]


@pytest.fixture(scope="module")
def cupy():
    return pytest.importorskip("cupy")


def computed(cupy, images, filters, problem, **options):
    out = cupy.full(problem.out_shape, cupy.nan, "float32")
    return im2win_on_device(cupy.asarray(images), cupy.asarray(filters), problem.stride, out=out, **options).get()


@pytest.mark.parametrize("seed", range(40))
def test_random_shapes_equal_the_definition(cupy, seed):
    rng = np.random.default_rng(seed)
    images, channels, filter_height, filter_width, stride = (int(x) for x in rng.integers(1, 9, 5))
    size = (filter_height + int(rng.integers(0, 60)), filter_width + int(rng.integers(0, 60)))
    problem = Im2winProblem(images, channels, *size, int(rng.integers(1, 300)), filter_height, filter_width, stride)
    batch, filters = integers(problem)
    expected = convolution_by_definition(batch, filters, problem)
    for form in ("tiled", "basic"):
        np.testing.assert_array_equal(computed(cupy, batch, filters, problem, form=form), expected)
    in_parts = computed(cupy, batch, filters, problem, window_bytes=1)
    np.testing.assert_array_equal(in_parts, expected)


@pytest.mark.parametrize("number", LAYERS)
def test_layers_keep_the_bound(cupy, number):
    """Three images of each layer: n products, added in order: error at most n * 2^-24 of the sum of their sizes."""
    problem = LAYERS[number].with_images(3)
    rng = np.random.default_rng(number)
    images = rng.normal(size=(3, problem.channels, problem.height, problem.width)).astype(np.float32)
    shape = (problem.filters, problem.channels, problem.filter_height, problem.filter_width)
    filters = rng.normal(size=shape).astype(np.float32)
    errors = computed(cupy, images, filters, problem) - convolution_by_definition(images, filters, problem)
    products = convolution_by_definition(np.abs(images), np.abs(filters), problem)
    assert (np.abs(errors) <= problem.depth * 2.0**-24 * products).all()


def test_every_step_gives_the_same_bits(cupy):
    problem = Im2winProblem(5, 7, 61, 67, 100, 5, 3, 2)
    rng = np.random.default_rng(7)
    images = rng.normal(size=(5, 7, 61, 67)).astype(np.float32)
    filters = rng.normal(size=(100, 7, 5, 3)).astype(np.float32)
    basic = computed(cupy, images, filters, problem, form="basic", vector=1)
    for tuning in (*STEPS.values(), *ABLATION.values()):
        np.testing.assert_array_equal(computed(cupy, images, filters, problem, tuning=tuning), basic)


def test_arrays_that_are_not_dense(cupy):
    problem = Im2winProblem(2, 3, 20, 24, 6, 3, 3)
    images, filters = integers(problem)
    views = cupy.asarray(np.repeat(images, 2, 3))[..., ::2], cupy.asarray(np.repeat(filters, 2, 0))[::2]
    expected = convolution_by_definition(images, filters, problem)
    np.testing.assert_array_equal(im2win_on_device(*views).get(), expected)


def test_what_does_not_belong_together_is_refused(cupy):
    images, filters = cupy.ones((1, 2, 8, 8), "float32"), cupy.ones((4, 2, 3, 3), "float32")
    with pytest.raises(ShapeError, match="as many channels"):
        im2win_on_device(images, filters[:, :1])
    with pytest.raises(DataTypeError, match="float32"):
        im2win_on_device(images.astype("float64"), filters)
    with pytest.raises(ArgumentError, match="tiled or basic"):
        im2win_on_device(images, filters, form="fast")
    with pytest.raises(ShapeError, match="out must be"):
        im2win_on_device(images, filters, out=cupy.empty((1, 4, 8, 8), "float32"))
