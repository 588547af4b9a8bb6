"""Dynamic blocking and the tiled product, their own source run on the host, against the definition in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.kernels.pointwise_definition import assert_mixed, mixed_on_host, random_matrix, random_stack
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.pointwise.blocking_options import BlockingOptions
from xcorr_app.gpu.pointwise.kernels import pointwise_launch
from xcorr_app.gpu.pointwise.problem import PointwiseProblem
from xcorr_app.gpu.pointwise.tiles import tiled_launch
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES

H200 = KNOWN_DEVICES["h200"]
ONE = replace(H200, multiprocessors=1)
"""A device on which blocks get large tiles, and several of them, from few pixels."""
BOTH = ("blocking", "tiled")


def check(folder, shape, axis, filters, dtype="float32", *, white=None, clip=False, **options):
    stack, matrix = random_stack(shape, dtype), random_matrix(filters, shape[axis])
    result, counted = mixed_on_host(folder, stack, matrix, axis, white=white, clip=clip, **options)
    assert_mixed(result, stack, matrix, axis, white=white, clip=clip, counted=counted)
    return result


SIZES = [
    (1, 1, 1),
    (1, 5, 3),
    (3, 1, 200),
    (7, 9, 49),
    (16, 47, 130),
    (17, 48, 64),
    (33, 50, 36),
    (64, 24, 98),
    (20, 23, 300),
    (130, 100, 25),
    (9, 513, 20),
]
"""Channels, filters, pixels: both layouts, block tiles of half the filters, tails of everything."""


@pytest.mark.parametrize("limits", [H200, ONE], ids=["many tiles", "large tiles"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("kernel", BOTH)
def test_sizes(host_builds, kernel, sizes, limits):
    channels, filters, pixels = sizes
    check(host_builds, (2, channels, pixels), 1, filters, kernel=kernel, limits=limits)


@pytest.mark.parametrize("sizes", [(1, 3, 70), (5, 9, 33), (70, 60, 41), (19, 30, 130)], ids=str)
@pytest.mark.parametrize("kernel", BOTH)
def test_interleaved_channels(host_builds, kernel, sizes):
    channels, filters, pixels = sizes
    check(host_builds, (pixels, channels), 1, filters, kernel=kernel, limits=ONE)


OPTIONS = [
    {"warps": 1},
    {"warps": 2, "staging": "registers"},
    {"warps": 8, "blocks": 1},
    {"warps": 8, "staging": "registers", "rounds": 2},
    {"staging": "registers"},
    {"staging": "registers", "channel_count": 16},
    {"channel_count": 1, "blocks": 3, "registers": 40000},
    {"shared_bytes": 16384, "filters_for_l1": 8},
    {"filters_for_l1": 4096, "rounds": 1},
]


def test_options_and_tunables_stand_for_each_other():
    for options in OPTIONS:
        assert BlockingOptions.of(BlockingOptions(**options).tuning()) == BlockingOptions(**options)
    for wrong in ({"warps": 3}, {"warps": None}, {"blocks": 0}, {"channel_count": 5}, {"rounds": 1.5}):
        with pytest.raises(ArgumentError, match="kernel 'blocking' takes"):
            BlockingOptions(**wrong)
    with pytest.raises(ArgumentError, match="takes async, registers"):
        BlockingOptions(staging="shared")


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
@pytest.mark.parametrize("target", [None, "float32"])
@pytest.mark.parametrize("shape", [(35, 6, 11), (66, 35)])
def test_types_of_dynamic_blocking(host_builds, dtype, target, shape):
    axis = len(shape) - 1 if len(shape) == 2 else 0
    for options in ({}, {"clip": True}, {"white": 200.0}):
        check(host_builds, shape, axis, 34, dtype, kernel="blocking", limits=ONE, target=target, **options)


@pytest.mark.parametrize("segments", [2, 3, 7])
@pytest.mark.parametrize("inner", [12, 15])
def test_channels_shared_by_blocks(host_builds, monkeypatch, segments, inner):
    def with_segments(problem, limits, **options):
        return tiled_launch(problem, limits, segments=segments, **options)

    monkeypatch.setattr("xcorr_app.gpu.pointwise.tiles.tiled_launch", with_segments)
    check(host_builds, (3, 90, inner), 1, 21, kernel="tiled")


WHOLE_DEPTH = {
    "SPLIT": 0,
    "WARPS_K": 1,
    "LANES_M": 4,
    "WARPS_M": 1,
    "WARPS_N": 1,
    "MICRO_M": 8,
    "MICRO_N": 8,
    "TILE_K": 8,
    "BUFFERS": 2,
}
"""A tile whose warps each sum all channels."""
TUNINGS = [
    {"MICRO_N": 4},
    {"WARPS_N": 4, "TILE_K": 5},
    {"LANES_M": 8, "WARPS_M": 3, "MICRO_M": 4, "MICRO_N": 4, "TILE_K": 12},
    {"LANES_M": 2, "WARPS_N": 2, "BUFFERS": 1, "PREFETCH": 0},
    {"LANES_M": 1, "WARPS_M": 5},
    {"TILE_K": 4, "BUFFERS": 3},
    {"TILE_K": 4, "BUFFERS": 4},
]


def tiled_on_host(folder, shape, filters, tuning):
    stack, matrix = random_stack(shape, "float32"), random_matrix(filters, shape[1])
    result, _ = mixed_on_host(folder, stack, matrix, 1, kernel="tiled", tuning=tuning)
    assert_mixed(result, stack, matrix, 1)
    return result


@pytest.mark.parametrize("tuning", TUNINGS, ids=str)
@pytest.mark.parametrize("shape", [(2, 21, 36), (2, 21, 35), (75, 21)])
def test_every_tile_gives_the_same_bits(host_builds, tuning, shape):
    expected = tiled_on_host(host_builds, shape, 45, WHOLE_DEPTH)
    result = tiled_on_host(host_builds, shape, 45, {**WHOLE_DEPTH, **tuning})
    np.testing.assert_array_equal(result, expected)


PLANES = [
    {"MICRO_N": 7},
    {"MICRO_N": 7, "WARPS_N": 3, "LANES_M": 8, "BUFFERS": 3, "TILE_K": 4},
    {"LANES_M": 1, "WARPS_M": 3, "TILE_K": 12},
    {"LANES_M": 2, "WARPS_N": 2, "MICRO_M": 4, "MICRO_N": 4},
]


@pytest.mark.parametrize("tuning", PLANES, ids=str)
@pytest.mark.parametrize("shape", [(1, 28, 49), (5, 24, 49), (7, 40, 9), (3, 20, 6)])
def test_whole_planes_give_the_same_bits(host_builds, tuning, shape):
    """Planes that no four pixels fill; one image, the last tile not full, several images a tile."""
    expected = tiled_on_host(host_builds, shape, 44, {**WHOLE_DEPTH, "PLANE": 0})
    result = tiled_on_host(host_builds, shape, 44, {**WHOLE_DEPTH, "PLANE": shape[2], **tuning})
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("shape", [(2, 40, 36), (72, 40)])
@pytest.mark.parametrize("kernel", BOTH)
def test_a_bad_value_stays_in_its_pixel(host_builds, kernel, bad, shape):
    stack, matrix = random_stack(shape, "float32"), np.abs(random_matrix(50, 40))
    np.moveaxis(stack, 1, 0)[3].flat[17] = bad
    result, _ = mixed_on_host(host_builds, stack, matrix, 1, kernel=kernel, limits=ONE)
    wrong = ~np.isfinite(np.moveaxis(result, 1, 0).reshape(50, -1))
    assert wrong[:, 17].all()
    assert wrong.sum() == 50


def test_what_a_kernel_does_not_compute_is_refused():
    with pytest.raises(ArgumentError, match="multiplies float32 alone"):
        pointwise_launch(PointwiseProblem(1, 40, 40, 9, clip=True), "tiled")
    for kernel in BOTH:
        with pytest.raises(ArgumentError, match="in parts"):
            pointwise_launch(PointwiseProblem(2**10, 1024, 40, 2**12), kernel)
    with pytest.raises(ArgumentError, match="up to 32 channels"):
        pointwise_launch(PointwiseProblem(1, 33, 1, 9), "mix")
    with pytest.raises(ArgumentError, match="no block can hold"):
        pointwise_launch(PointwiseProblem(1, 40, 40, 9), "tiled", tuning={"WARPS_M": 40})
