"""Tiles of the pointwise layers: what the model chooses for full and for few pixels, and what a launch is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.pointwise.layers import LAYERS
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.pointwise.problem import PointwiseProblem
from xcorr_app.gpu.pointwise.tile_choice import choose_tile, modelled_cycles, takes_planes
from xcorr_app.gpu.pointwise.tile_shapes import TILES
from xcorr_app.gpu.pointwise.tiles import tiled_launch
from xcorr_app.gpu.runtime.launch import ceil_div
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES

H200 = KNOWN_DEVICES["h200"]
DEEP = [layer for layer in LAYERS if layer[0] > 64]


def problem_of(layer, images):
    channels, filters, side = layer
    return PointwiseProblem(images, channels, filters, side * side)


@pytest.mark.share(3)
@pytest.mark.parametrize("name", sorted(KNOWN_DEVICES))
@pytest.mark.parametrize("images", [1, 32, 128])
def test_launches_of_the_layers_keep_the_limits(images, name):
    limits = KNOWN_DEVICES[name]
    for layer in LAYERS:
        problem = problem_of(layer, images)
        launch = tiled_launch(problem, limits)
        assert launch.shared_bytes <= limits.shared_bytes
        assert launch.defines["PLANE"] == (49 if layer[2] == 7 else 0)
        choice = choose_tile(problem, limits, planes=takes_planes(problem, 16))
        tiles = ceil_div(layer[1], choice.tile.filters)
        columns = choice.tile.columns_used(int(launch.defines["PLANE"]))
        assert launch.blocks == tiles * ceil_div(problem.pixels, columns) * launch.segments


@pytest.mark.parametrize("layer", DEEP, ids=str)
def test_a_batch_of_one_has_warps_for_every_multiprocessor(layer):
    launch = tiled_launch(problem_of(layer, 1), H200)
    assert launch.blocks * launch.threads // 32 >= H200.multiprocessors
    assert launch.defines["WARPS_K"] > 1


@pytest.mark.parametrize("layer", DEEP, ids=str)
def test_large_batches_waste_few_products(layer):
    problem = problem_of(layer, 128)
    tile = choose_tile(problem, H200, planes=layer[2] == 7).tile
    plane = 49 if layer[2] == 7 else 0
    whole = ceil_div(problem.filters, tile.filters) * tile.filters
    whole *= ceil_div(problem.pixels, tile.columns_used(plane)) * tile.columns
    assert whole <= 1.36 * problem.filters * problem.pixels


def test_tiles_for_filters_that_powers_of_two_miss():
    assert {24, 40, 48, 80, 96, 112, 160} <= {tile.filters for tile in TILES}


def test_the_model_knows_what_costs_time():
    problem = problem_of((512, 512, 14), 32)
    choice = choose_tile(problem, H200)
    cycles = modelled_cycles(problem, H200, choice, 0)
    assert modelled_cycles(replace(problem, outer=64), H200, choice, 0) > 1.5 * cycles
    assert modelled_cycles(problem, replace(H200, multiprocessors=66), choice, 0) > 1.5 * cycles
    assert modelled_cycles(problem, H200, replace(choice, segments=16), 0) > cycles


@pytest.mark.parametrize(
    ("problem", "alignment", "whole"),
    [
        (PointwiseProblem(2, 8, 8, 49), 16, True),
        (PointwiseProblem(2, 8, 8, 6), 16, True),
        (PointwiseProblem(2, 8, 8, 49), 8, False),
        (PointwiseProblem(2, 8, 8, 64), 16, False),
        (PointwiseProblem(2, 8, 8, 257), 16, False),
        (PointwiseProblem(2, 6, 8, 49), 16, False),
        (PointwiseProblem(2, 8, 6, 49), 16, False),
        (PointwiseProblem(49, 8, 8, 1), 16, False),
    ],
)
def test_which_planes_are_copied_whole(problem, alignment, whole):
    assert takes_planes(problem, alignment) is whole
    plane = tiled_launch(problem, H200, alignment=alignment).defines["PLANE"]
    assert plane == (problem.inner if whole else 0)


@pytest.mark.parametrize(
    "tuning",
    [
        {"PLANE": 36},
        {"TILE_K": 10, "WARPS_K": 4},
        {"LANES_M": 32, "WARPS_N": 1, "MICRO_N": 8},
        {"TILE_K": 256, "WARPS_K": 1},
    ],
    ids=str,
)
def test_tiles_that_cannot_be_are_refused(tuning):
    with pytest.raises(ArgumentError, match=r"planes of|no place for|no block can hold"):
        tiled_launch(PointwiseProblem(2, 512, 64, 49), H200, tuning=tuning)
