"""Im2win's problems and launches, without a device: sizes, parts, limits of the twelve layers, refusals."""

from __future__ import annotations

import pytest

from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.im2win_launch import (
    ABLATION,
    STEPS,
    TILES,
    basic_launch,
    convolve_launch,
    tile_for,
    transform_launch,
)
from xcorr_app.gpu.im2win_problem import LAYERS, MOST_ELEMENTS, Im2winProblem
from xcorr_app.gpu.im2win_run import WINDOW_BYTES
from xcorr_app.gpu.launch import DeviceLimits


def test_sizes_of_a_strided_problem():
    problem = Im2winProblem(2, 3, 11, 14, 5, 3, 4, 2)
    assert problem.out_shape == (2, 5, 5, 6)
    assert problem.window_shape == (2, 3, 5, 42)
    assert (problem.columns, problem.depth, problem.products) == (60, 36, 5 * 60 * 36)


def test_products_of_the_layers():
    """Multiply-adds of layers 1 and 12 by hand."""
    assert LAYERS[1].products == 128 * 96 * 55 * 55 * 3 * 11 * 11
    assert LAYERS[12].products == 128 * 512 * 5 * 5 * 512 * 3 * 3


@pytest.mark.parametrize("window_bytes", [1, WINDOW_BYTES, 2**40])
@pytest.mark.parametrize("number", LAYERS)
def test_launches_of_the_layers_keep_the_limits(number, window_bytes):
    layer = LAYERS[number]
    part = layer.with_images(layer.images_per_part(window_bytes))
    assert part.images == 1 or 4 * part.window_elements <= max(window_bytes, 4 * layer.window_elements // layer.images)
    assert part.window_elements <= MOST_ELEMENTS
    launches = [convolve_launch(part, tuning=tuning) for tuning in (*STEPS.values(), *ABLATION.values())]
    for launch in [*launches, basic_launch(part), transform_launch(part), transform_launch(part, vector=1)]:
        assert 32 <= launch.threads <= 1024
        assert launch.threads % 32 == 0
        assert 1 <= launch.blocks < 2**31
        assert launch.shared_bytes <= 48 * 1024


@pytest.mark.parametrize("number", LAYERS)
def test_tiles_cover_the_layers(number):
    layer = LAYERS[number]
    launch = convolve_launch(layer)
    tile_m, tile_n = launch.defines["WARPS_M"] * 32, launch.defines["WARPS_N"] * 64
    covered = launch.blocks * tile_m * tile_n
    assert layer.filters * layer.columns <= covered
    assert covered <= 1.05 * layer.filters * layer.columns  # little of the work is thrown away


def test_tiles_by_number_of_filters():
    def tile(filters, images=128):
        return tile_for(Im2winProblem(images, 8, 114, 114, filters, 3, 3), DeviceLimits())

    assert tile(128)[0] * 32 == 128
    assert tile(96)[0] * 32 == 96
    assert tile(64)[0] * 32 == 64
    assert tile(7)[0] * 32 == 32
    assert tile(32, images=1) in TILES


def test_a_device_that_large_tiles_do_not_fill_gets_small_ones():
    few = Im2winProblem(1, 64, 34, 34, 128, 3, 3)
    small, large = tile_for(few, DeviceLimits(multiprocessors=132)), tile_for(few, DeviceLimits(multiprocessors=1))
    assert small[0] * small[1] < large[0] * large[1]


def test_parts_are_as_equal_as_can_be():
    problem = Im2winProblem(10, 1, 8, 8, 1, 3, 3)
    of_one = 4 * problem.window_elements // 10
    assert problem.images_per_part(4 * of_one) == 4
    assert problem.images_per_part(6 * of_one) == 5
    assert problem.images_per_part(9 * of_one) == 5
    assert problem.images_per_part(0) == 1


def test_every_layer_keeps_the_addresses_of_a_launch_in_parts():
    huge = Im2winProblem(1000, 64, 224, 224, 64, 7, 7)
    assert huge.window_elements > MOST_ELEMENTS
    assert huge.with_images(huge.images_per_part(2**60)).window_elements <= MOST_ELEMENTS


def test_what_does_not_fit_is_refused():
    with pytest.raises(ShapeError, match="do not fit"):
        Im2winProblem(1, 1, 5, 5, 1, 6, 3)
    with pytest.raises(ShapeError, match="at least one"):
        Im2winProblem(1, 1, 5, 5, 1, 3, 3, 0)
    with pytest.raises(ArgumentError, match="cut the images"):
        Im2winProblem(1, 16, 4096, 4096, 1, 31, 31)
    problem = Im2winProblem(1, 1, 9, 9, 1, 3, 3)
    with pytest.raises(ArgumentError, match="no tunable PITCH"):
        convolve_launch(problem, tuning={"PITCH": 3})
    with pytest.raises(ArgumentError, match="no block can hold"):
        convolve_launch(problem, tuning={"TILE_K": 512})
    with pytest.raises(ArgumentError, match="1 or 4"):
        transform_launch(problem, vector=2)
