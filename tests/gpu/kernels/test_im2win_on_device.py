"""Im2win on the device against the definition in float64; outputs poisoned, sizes odd, parts, tilings and layers."""

import numpy as np
import pytest

from tests.device import NEEDS_DEVICE
from tests.kernels.im2win_definition import convolution_by_definition, integers
from xcorr_app.gpu.im2win.problem import LAYERS, WHY_NOT, Im2winProblem, stored_filters
from xcorr_app.gpu.im2win.run import bound_form

pytestmark = NEEDS_DEVICE


def computed(cupy, images, filters, problem, **options):
    return convolved(cupy, cupy.asarray(images), cupy.asarray(filters), problem, **options).get()


def convolved(cupy, images, filters, problem, form="implicit", **options):
    out = cupy.full(problem.out_shape, cupy.nan, "float32")
    bound_form(form, problem, stored_filters(filters), **options)(images, out)
    return out


@pytest.mark.parametrize("seed", range(40))
def test_random_shapes_equal_the_definition(cupy, seed):
    rng = np.random.default_rng(seed)
    images, channels, filter_height, filter_width, stride = (int(x) for x in rng.integers(1, 9, 5))
    size = (filter_height + int(rng.integers(0, 60)), filter_width + int(rng.integers(0, 60)))
    problem = Im2winProblem(images, channels, *size, int(rng.integers(1, 300)), filter_height, filter_width, stride)
    batch, filters = integers(problem)
    expected = convolution_by_definition(batch, filters, problem)
    for form in WHY_NOT:
        np.testing.assert_array_equal(computed(cupy, batch, filters, problem, form=form), expected)
    in_parts = computed(cupy, batch, filters, problem, form="im2win", window_bytes=1)
    np.testing.assert_array_equal(in_parts, expected)


@pytest.mark.parametrize("form", ["implicit", "im2win"])
@pytest.mark.parametrize("number", LAYERS)
def test_layers_keep_the_bound(cupy, number, form):
    """Three images of each layer: n products, added in order: error at most n * 2^-24 of the sum of their sizes."""
    problem = LAYERS[number].with_images(3)
    rng = np.random.default_rng(number)
    images = rng.normal(size=(3, problem.channels, problem.height, problem.width)).astype(np.float32)
    shape = (problem.filters, problem.channels, problem.filter_height, problem.filter_width)
    filters = rng.normal(size=shape).astype(np.float32)
    errors = computed(cupy, images, filters, problem, form=form) - convolution_by_definition(images, filters, problem)
    products = convolution_by_definition(np.abs(images), np.abs(filters), problem)
    assert (np.abs(errors) <= problem.depth * 2.0**-24 * products).all()


@pytest.mark.parametrize("number", LAYERS)
def test_a_whole_layer(cupy, number):
    """All 128 images, whose first, some and last are compared; the plan is that of the whole layer."""
    problem = LAYERS[number]
    few = problem.with_images(1)
    random = cupy.random.default_rng(number)
    images = random.standard_normal((problem.images, problem.channels, problem.height, problem.width), dtype="float32")
    shape = (problem.filters, problem.channels, problem.filter_height, problem.filter_width)
    filters = random.standard_normal(shape, dtype="float32")
    output = convolved(cupy, images, filters, problem)
    assert output.shape == problem.out_shape
    for i in (0, 41, 127):
        image, bank = images[i : i + 1].get(), filters.get()
        errors = output[i : i + 1].get() - convolution_by_definition(image, bank, few)
        products = convolution_by_definition(np.abs(image), np.abs(bank), few)
        assert (np.abs(errors) <= problem.depth * 2.0**-24 * products).all()
    one = output[77].get()
    del output
    np.testing.assert_array_equal(convolved(cupy, images, filters, problem)[77].get(), one)


def test_the_implicit_form_makes_no_window_tensor(cupy):
    """It takes memory for the output and the filters alone."""
    problem = LAYERS[4].with_images(4)  # which is not shared among segments
    images = cupy.ones((4, problem.channels, problem.height, problem.width), "float32")
    filters = cupy.ones((problem.filters, problem.channels, problem.filter_height, problem.filter_width), "float32")
    taken = []

    def allocator(size):
        taken.append(size)
        return cupy.get_default_memory_pool().malloc(size)

    with cupy.cuda.using_allocator(allocator):
        convolved(cupy, images, filters, problem)
    outputs = 4 * problem.filters * problem.columns
    assert outputs <= sum(taken) <= 1.1 * outputs + 4 * filters.nbytes
