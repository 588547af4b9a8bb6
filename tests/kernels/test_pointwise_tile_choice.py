"""Tiles of the pointwise layers: what the model chooses for full and for few pixels, and what a launch is refused."""

from __future__ import annotations

import pytest

from benchmarks.pointwise.layers import LAYERS
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.pointwise.problem import PointwiseProblem
from xcorr_app.gpu.pointwise.tile_choice import choose_tile, takes_planes
from xcorr_app.gpu.pointwise.tiles import tiled_launch
from xcorr_app.gpu.runtime.launch import ceil_div
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES

H200 = KNOWN_DEVICES["h200"]


def problem_of(layer, images):
    channels, filters, side = layer
    return PointwiseProblem(images, channels, filters, side * side)


@pytest.mark.share(9)
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
