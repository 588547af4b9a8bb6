"""Im2win on the device against the definition in float64; outputs poisoned, sizes odd, parts, tilings and layers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.device import NEEDS_DEVICE
from tests.kernels.im2win_definition import convolution_by_definition, integers
from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.gpu.im2win import tiles as im2win_tiles
from xcorr_app.gpu.im2win.launches import ABLATION, STEPS
from xcorr_app.gpu.im2win.problem import LAYERS, Im2winProblem
from xcorr_app.gpu.im2win.run import FORMS, im2win_on_device
from xcorr_app.gpu.im2win.tiles import TILE_DEPTHS, TILES

pytestmark = NEEDS_DEVICE


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
    for form in FORMS:
        if form == "shallow" and problem.depth > 96:  # more values than registers, with any stride
            continue
        np.testing.assert_array_equal(computed(cupy, batch, filters, problem, form=form), expected)
    in_parts = computed(cupy, batch, filters, problem, form="im2win", window_bytes=1)
    np.testing.assert_array_equal(in_parts, expected)
    for form in ("im2win", "implicit"):
        shared = computed(cupy, batch, filters, problem, form=form, segments=int(rng.integers(2, 9)))
        np.testing.assert_array_equal(shared, expected)


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


@pytest.mark.parametrize("side", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("size", [(61, 64), (62, 66), (63, 65)], ids=str)
def test_few_products_give_the_bits_of_the_tiled_product(cupy, size, side):
    """Patches of every shape; every second result too."""
    for stride in (1, 2):
        channels = max(1, 64 // (side * side))
        problem = Im2winProblem(5, channels, *size, 37, side, side, stride)
        rng = np.random.default_rng(side)
        images = rng.normal(size=(5, channels, *size)).astype(np.float32)
        filters = rng.normal(size=(37, channels, side, side)).astype(np.float32)
        expected = computed(cupy, images, filters, problem, form="implicit", segments=1)
        for tuning in (None, {"SHARE": 12}, {"GROUP": 8}, {"PIXELS_X": 1, "PIXELS_Y": 1}, {"PIXELS_Y": 1}):
            output = computed(cupy, images, filters, problem, form="shallow", tuning=tuning)
            np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("number", LAYERS)
def test_a_whole_layer(cupy, number):
    """All 128 images, whose first, some and last are compared; the plan is that of the whole layer."""
    problem = LAYERS[number]
    few = problem.with_images(1)
    random = cupy.random.default_rng(number)
    images = random.standard_normal((problem.images, problem.channels, problem.height, problem.width), dtype="float32")
    shape = (problem.filters, problem.channels, problem.filter_height, problem.filter_width)
    filters = random.standard_normal(shape, dtype="float32")
    output = im2win_on_device(images, filters, problem.stride)
    assert output.shape == problem.out_shape
    for i in (0, 41, 127):
        image, bank = images[i : i + 1].get(), filters.get()
        errors = output[i : i + 1].get() - convolution_by_definition(image, bank, few)
        products = convolution_by_definition(np.abs(image), np.abs(bank), few)
        assert (np.abs(errors) <= problem.depth * 2.0**-24 * products).all()
    one = output[77].get()
    del output
    np.testing.assert_array_equal(im2win_on_device(images, filters, problem.stride)[77].get(), one)


@pytest.mark.parametrize("size", [(61, 67), (63, 65)])
def test_every_step_gives_the_same_bits(cupy, size):
    problem = Im2winProblem(5, 7, *size, 100, 5, 3, 2)
    rng = np.random.default_rng(7)
    images = rng.normal(size=(5, 7, *size)).astype(np.float32)
    filters = rng.normal(size=(100, 7, 5, 3)).astype(np.float32)
    basic = computed(cupy, images, filters, problem, form="im2win-basic", vector=1)
    tilings = [tile.defines() for tile in TILES]
    deep = [{"TILE_K": depth} for depth in TILE_DEPTHS]
    for tuning in (*STEPS.values(), *ABLATION.values(), *tilings, *deep):
        for form in ("im2win", "implicit"):
            output = computed(cupy, images, filters, problem, form=form, segments=1, tuning=tuning)
            np.testing.assert_array_equal(output, basic)


def test_the_implicit_form_makes_no_window_tensor(cupy):
    """It takes memory for the output and the filters alone."""
    problem = LAYERS[4].with_images(4)
    images = cupy.ones((4, problem.channels, problem.height, problem.width), "float32")
    filters = cupy.ones((problem.filters, problem.channels, problem.filter_height, problem.filter_width), "float32")
    taken = []

    def allocator(size):
        taken.append(size)
        return cupy.get_default_memory_pool().malloc(size)

    with cupy.cuda.using_allocator(allocator):
        im2win_on_device(images, filters, problem.stride, segments=1)
    outputs = 4 * problem.filters * problem.columns
    assert outputs <= sum(taken) <= 1.1 * outputs + 4 * filters.nbytes


def test_segments_serial_take_no_memory(cupy):
    """Layer 12 takes its output alone, once the counters of the stream are there."""
    problem = LAYERS[12]
    images = cupy.ones((problem.images, problem.channels, problem.height, problem.width), "float32")
    filters = cupy.ones((problem.filters, problem.channels, problem.filter_height, problem.filter_width), "float32")
    im2win_on_device(images, filters)
    pool = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(pool.malloc):
        output = im2win_on_device(images, filters)
    assert pool.total_bytes() == output.nbytes
    assert (output == problem.depth).all()


@pytest.mark.parametrize("size", [(15, 18), (16, 19)])
@pytest.mark.parametrize("segments", [2, 5, 16])
def test_turns_give_the_bits_of_a_workspace(cupy, monkeypatch, segments, size):
    """In every run, and where launches of four streams run at once, each with counters of its own."""
    problem = Im2winProblem(40, 70, *size, 130, 3, 3)
    rng = np.random.default_rng(segments)
    images = cupy.asarray(rng.normal(size=(40, 70, *size)).astype(np.float32))
    filters = cupy.asarray(rng.normal(size=(130, 70, 3, 3)).astype(np.float32))
    options = {"segments": segments, "tuning": {"TILE_K": 16}}
    monkeypatch.setattr(im2win_tiles, "_MAX_WORKSPACE", 2**40)
    expected = im2win_on_device(images, filters, **options).get()
    monkeypatch.setattr(im2win_tiles, "_MAX_WORKSPACE", 0)
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(4)]
    outputs = [cupy.full(problem.out_shape, cupy.nan, "float32") for _ in range(24)]
    cupy.cuda.Device().synchronize()
    for i, out in enumerate(outputs):
        with streams[i % 4]:
            im2win_on_device(images, filters, out=out, **options)
    cupy.cuda.Device().synchronize()
    for out in outputs:
        np.testing.assert_array_equal(out.get(), expected)


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
    with pytest.raises(ArgumentError, match="auto, im2win, im2win-basic, implicit"):
        im2win_on_device(images, filters, form="fast")
    with pytest.raises(ShapeError, match="out must be"):
        im2win_on_device(images, filters, out=cupy.empty((1, 4, 8, 8), "float32"))
