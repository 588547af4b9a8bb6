"""Im2win's problems and launches, without a device: sizes, parts, limits of the twelve layers, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.im2win.launches import (
    ABLATION,
    STEPS,
    basic_launch,
    convolve_launch,
    semaphore_count,
    transform_launch,
)
from xcorr_app.gpu.im2win.problem import LAYERS, MAX_ELEMENTS, MAX_TILE_DEPTH, Im2winProblem, stored_filters
from xcorr_app.gpu.im2win.run import WINDOW_BYTES
from xcorr_app.gpu.im2win.tiles import TILE_DEPTHS, TILES, plan_for, tile_depth, uses_semaphore
from xcorr_app.gpu.pointwise.tiles import add_segments_launch
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES, DeviceLimits

DEVICE = DeviceLimits()


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
    assert part.window_elements <= MAX_ELEMENTS
    launches = [convolve_launch(part, tuning=tuning) for tuning in (*STEPS.values(), *ABLATION.values())]
    launches += [convolve_launch(part, implicit=True), add_segments_launch(part.filters * part.columns, 2)]
    for launch in [*launches, basic_launch(part), transform_launch(part), transform_launch(part, vector=1)]:
        assert 32 <= launch.threads <= 1024
        assert launch.threads % 32 == 0
        assert 1 <= launch.blocks < 2**31
        assert launch.shared_bytes <= 48 * 1024


@pytest.mark.parametrize("number", LAYERS)
def test_tiles_cover_the_layers(number):
    layer = LAYERS[number]
    plan, launch = plan_for(layer, DEVICE), convolve_launch(layer)
    covered = launch.blocks // launch.segments * plan.tile.filters * plan.tile.columns
    assert layer.filters * layer.columns <= covered
    assert covered <= 1.05 * layer.filters * layer.columns  # little of the work is thrown away
    assert layer.depth <= launch.defines["TILE_K"] * -(-layer.depth // launch.defines["TILE_K"]) <= 1.05 * layer.depth


@pytest.mark.parametrize("number", LAYERS)
def test_the_model_expects_the_target_of_every_layer(number):
    """0.55 of the rate of multiply-adds: 128 a cycle on each multiprocessor."""
    layer = LAYERS[number]
    share = layer.products / (128 * DEVICE.multiprocessors) / plan_for(layer, DEVICE).cycles
    assert 0.55 <= share <= 1


def test_k_is_shared_where_tiles_do_not_fill_the_device():
    layer = LAYERS[12]
    shared, alone = plan_for(layer, DEVICE), plan_for(layer, DEVICE, segments=1)
    assert shared.segments > 1 == alone.segments
    assert shared.cycles < 0.9 * alone.cycles
    assert plan_for(LAYERS[4], DEVICE).segments == 1


@pytest.mark.parametrize("segments", [1, 2, 3, 5, 16, 1000])
def test_segments_share_all_of_k(segments):
    layer = LAYERS[11]
    launch = convolve_launch(layer, segments=segments)
    tiles, of_segment = -(-layer.depth // launch.defines["TILE_K"]), launch.extra[0]
    assert (launch.segments - 1) * of_segment < tiles <= launch.segments * of_segment
    assert launch.segments <= segments
    assert add_segments_launch(layer.filters * layer.columns, launch.segments).extra == (
        layer.filters * layer.columns,
        launch.segments,
    )
    assert semaphore_count(launch) == 0
    serial = convolve_launch(layer, implicit=True, segments=segments)
    assert semaphore_count(serial) == (serial.blocks // serial.segments if serial.segments > 1 else 0)


def test_segments_of_little_output_take_no_turns():
    assert semaphore_count(convolve_launch(LAYERS[12].with_images(1), implicit=True, segments=16)) == 0
    assert uses_semaphore(LAYERS[12], 16, 5)


def test_a_bank_is_read_as_it_is_where_segments_take_turns():
    """In tiles that its lanes share evenly; a workspace and a window tensor go with stored filters."""
    layer = LAYERS[12]
    assert convolve_launch(layer, implicit=True).defines["BANK"] == 1
    assert convolve_launch(layer, implicit=True, tuning={"TILE_K": 12}).defines["BANK"] == 0
    assert convolve_launch(layer, implicit=True, segments=1).defines["BANK"] == 0
    assert convolve_launch(layer, implicit=False).defines["BANK"] == 0
    assert convolve_launch(layer.with_images(1), implicit=True).defines["BANK"] == 0


def test_tiles_by_number_of_filters():
    def filters_of_tile(filters, images=128):
        return plan_for(Im2winProblem(images, 8, 114, 114, filters, 3, 3), DEVICE).tile.filters

    assert filters_of_tile(96) in (32, 96)
    assert filters_of_tile(64) in (32, 64)
    assert filters_of_tile(30) == 32
    assert filters_of_tile(13) == 16
    assert filters_of_tile(7) == 8


def test_a_device_that_large_tiles_do_not_fill_gets_small_ones():
    few = Im2winProblem(1, 2, 34, 34, 128, 3, 3)
    small, large = plan_for(few, DEVICE).tile, plan_for(few, DeviceLimits(multiprocessors=1)).tile
    assert small.filters * small.columns < large.filters * large.columns
    assert {small, large} <= set(TILES)


def test_depth_of_a_tile_wastes_little():
    for depth in (1, 9, 25, 27, 49, 121, 147, 363, 576, 4608):
        assert tile_depth(depth) in TILE_DEPTHS
    assert tile_depth(9) == 9
    assert tile_depth(576) == 16
    assert -(-27 // tile_depth(27)) * tile_depth(27) <= 28
    assert max(TILE_DEPTHS) <= MAX_TILE_DEPTH


def test_filters_are_stored_by_element():
    filters = np.arange(2 * 3 * 2 * 4, dtype=np.float64).reshape(2, 3, 2, 4)
    stored = stored_filters(filters)
    assert stored.dtype == np.float32
    assert stored.shape == (24 + MAX_TILE_DEPTH, 4)
    for j, r, u, v in np.ndindex(filters.shape):
        assert stored[(r * 4 + v) * 2 + u, j] == filters[j, r, u, v]
    assert not stored[24:].any()
    assert not stored[:, 2:].any()


def test_parts_are_as_equal_as_can_be():
    problem = Im2winProblem(10, 1, 8, 8, 1, 3, 3)
    of_one = 4 * problem.window_elements // 10
    assert problem.images_per_part(4 * of_one) == 4
    assert problem.images_per_part(6 * of_one) == 5
    assert problem.images_per_part(9 * of_one) == 5
    assert problem.images_per_part(0) == 1


def test_every_layer_keeps_the_addresses_of_a_launch_in_parts():
    huge = Im2winProblem(1000, 64, 224, 224, 64, 7, 7)
    assert huge.window_elements > MAX_ELEMENTS
    assert huge.with_images(huge.images_per_part(2**60)).window_elements <= MAX_ELEMENTS


def test_what_does_not_fit_is_refused():
    with pytest.raises(ShapeError, match="do not fit"):
        Im2winProblem(1, 1, 5, 5, 1, 6, 3)
    with pytest.raises(ShapeError, match="at least one"):
        Im2winProblem(1, 1, 5, 5, 1, 3, 3, 0)
    with pytest.raises(ArgumentError, match="cut the images"):
        Im2winProblem(1, 129, 4096, 4096, 1, 3, 3)
    large = Im2winProblem(3, 16, 4096, 4096, 1, 31, 31)
    with pytest.raises(ArgumentError, match="take the implicit form"):
        large.images_per_part(2**40)
    assert large.images_per_part() == 3
    problem = Im2winProblem(1, 1, 9, 9, 1, 3, 3)
    with pytest.raises(ArgumentError, match="no tunable PITCH"):
        convolve_launch(problem, tuning={"PITCH": 3})
    with pytest.raises(ArgumentError, match="BUFFERS is at most 2"):
        convolve_launch(problem, tuning={"BUFFERS": 3})
    with pytest.raises(ArgumentError, match="no block can hold"):
        convolve_launch(problem, tuning={"TILE_K": 33})
    with pytest.raises(ArgumentError, match="1 or 4"):
        transform_launch(problem, vector=2)


def test_a_last_wave_of_few_blocks_is_filled_by_sharing_k():
    """Layer 11 took 0.59 ms with one segment, 0.54 with two to four; the others that were timed are best with one."""
    segments = {number: plan_for(LAYERS[number], KNOWN_DEVICES["h200"]).segments for number in (4, 5, 8, 9, 10, 11, 12)}
    assert segments == {4: 1, 5: 1, 8: 1, 9: 1, 10: 1, 11: 2, 12: 5}
