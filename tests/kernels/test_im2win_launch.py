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
from xcorr_app.gpu.im2win.tiles import plan_for
from xcorr_app.gpu.pointwise.tiles import add_segments_launch
from xcorr_app.gpu.runtime.limits import DeviceLimits

DEVICE = DeviceLimits()


def test_sizes_of_a_strided_problem():
    problem = Im2winProblem(2, 3, 11, 14, 5, 3, 4, 2)
    assert problem.out_shape == (2, 5, 5, 6)
    assert problem.window_shape == (2, 3, 5, 42)
    assert (problem.columns, problem.depth, problem.products) == (60, 36, 5 * 60 * 36)


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


def test_a_bank_is_read_as_it_is_where_segments_take_turns():
    """In tiles that its lanes share evenly; a workspace and a window tensor go with stored filters."""
    layer = LAYERS[12]
    assert convolve_launch(layer, implicit=True).defines["BANK"] == 1
    assert convolve_launch(layer, implicit=True, tuning={"TILE_K": 12}).defines["BANK"] == 0
    assert convolve_launch(layer, implicit=True, segments=1).defines["BANK"] == 0
    assert convolve_launch(layer, implicit=False).defines["BANK"] == 0
    assert convolve_launch(layer.with_images(1), implicit=True).defines["BANK"] == 0


def test_filters_are_stored_by_element():
    filters = np.arange(2 * 3 * 2 * 4, dtype=np.float64).reshape(2, 3, 2, 4)
    stored = stored_filters(filters)
    assert stored.dtype == np.float32
    assert stored.shape == (24 + MAX_TILE_DEPTH, 4)
    for j, r, u, v in np.ndindex(filters.shape):
        assert stored[(r * 4 + v) * 2 + u, j] == filters[j, r, u, v]
    assert not stored[24:].any()
    assert not stored[:, 2:].any()


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
