"""Every correlation kernel's own source, run on the host in lock-step, against the definition in float64."""

from itertools import product

import numpy as np
import pytest

from tests.kernels.correlation_definition import planes_by_definition
from tests.kernels.host_device import correlate_on_host
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.direct.kernels import KERNELS
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.types import INPUT_TYPES

PROBLEMS = {
    "one element": Problem.full_plane((1, 1), (1, 1)),
    "full plane of odd sizes": Problem.full_plane((33, 35), (20, 31)),
    "right larger than left": Problem.full_plane((3, 2), (9, 63)),
    "window inside": Problem((31, 33), (32, 40), (-2, -2), (5, 5)),
    "window beyond the matrices": Problem((9, 5), (4, 8), (-12, -40), (30, 66)),
    "n-to-m": Problem.full_plane((5, 6), (5, 7), lefts=3, rights=5, rights_per_left=5),
    "n-to-mn": Problem((9, 33), (8, 31), (-3, -2), (7, 4), lefts=2, rights=6, rights_per_left=3),
    "one-to-many": Problem.full_plane((4, 17), (6, 16), rights=9, rights_per_left=9),
}
N_TO_M = [
    Problem((20, 31), (9, 35), (-10, -40), (31, 70), lefts=3, rights=4, rights_per_left=4),
    Problem((9, 33), (21, 30), (-25, -3), (37, 7), lefts=1, rights=5, rights_per_left=5),
    Problem((9, 33), (8, 31), (-30, -2), (11, 5), lefts=3, rights=4, rights_per_left=4),  # shifts without any overlap
]
TILES = [
    ("multi-right", {"RIGHTS": 3, "WARPS": 2}),
    ("multi-left-right", {"LEFTS": 2, "RIGHTS": 3, "WARPS": 5}),
    ("multi-row", {"SHIFTS": 3, "LEFT_ROWS": 2, "WARPS": 8}),
    ("multi-row", {"SHIFTS": 8, "LEFT_ROWS": 4, "WARPS": 1, "PHASES": 1}),
    ("multi-row", {"SHIFTS": 2, "LEFT_ROWS": 5, "PHASES": 1}),
    ("combined-shuffle", {"LEFTS": 2, "RIGHTS": 3, "SHIFTS": 3, "LEFT_ROWS": 2}),
    ("combined-shuffle", {"PHASES": 1, "WARPS": 3}),
]
"""Of the kernels of several matrices and rows a thread, by shuffles."""
ROWS = [{"DISTRIBUTION": d, "MAX_ROWS": m} for d, m in ((0, 1), (1, 5), (2, 1), (2, 7))]
BLOCKS = [
    ("overlap-wise", {"THREADS": 1}),
    ("overlap-wise", {"THREADS": 96}),
    ("shift-per-warp", {"SHIFTS_PER_BLOCK": 1}),
    ("shift-per-warp", {"SHIFTS_PER_BLOCK": 7}),
    ("warp-shuffle", {"WARPS": 1}),
    ("warp-shuffle", {"WARPS": 9}),
    ("warp-shuffle-distributed", {"WARPS": 6}),
]
COMBINED_TILES = [
    # tiles, warps along x, y and for the same tile, chunk, segments
    {"TILE_X": 8, "TILE_Y": 8, "WARPS_X": 4, "WARPS_Y": 2, "WARPS_K": 1, "CHUNK_ROWS": 8, "CHUNK_COLUMNS": 16},
    {"TILE_X": 17, "TILE_Y": 6, "WARPS_X": 1, "WARPS_Y": 3, "WARPS_K": 2, "CHUNK_ROWS": 16, "CHUNK_COLUMNS": 12},
    {"TILE_X": 33, "TILE_Y": 3, "WARPS_X": 1, "WARPS_Y": 2, "WARPS_K": 1, "CHUNK_ROWS": 7, "SEGMENTS": 4},
    {"TILE_X": 4, "TILE_Y": 1, "WARPS_X": 2, "WARPS_Y": 1, "WARPS_K": 4, "CHUNK_ROWS": 32, "SEGMENTS": 9},
]
ROW_PIECES = [
    {"BLOCK": 16, "PAIRS": 2, "SHIFT_ROWS": 16, "CHUNK_ROWS": 8},  # rows wrap within and between chunks
    {"BLOCK": 32, "PAIRS": 1, "SHIFT_ROWS": 64, "CHUNK_ROWS": 64},  # all rows at once
    {"BLOCK": 20, "PAIRS": 4, "SHIFT_ROWS": 32, "CHUNK_ROWS": 16},
]
PIECES = [Problem.full_plane(*each, lefts=3, rights=3) for each in (((41, 37), (29, 60)), ((29, 64), (41, 33)))]


def integers(problem, dtype="float32", seed=3):
    """Random matrices of small integers, whose sums float32 holds exactly."""
    rng = np.random.default_rng(seed)
    low = 0 if dtype.startswith("u") else -9
    lefts = rng.integers(low, 30, (problem.lefts, *problem.left_shape)).astype(dtype)
    return lefts, rng.integers(low, 30, (problem.rights, *problem.right_shape)).astype(dtype)


@pytest.mark.parametrize("variant", KERNELS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_variant_equals_the_definition(host_builds, variant, name):
    problem = PROBLEMS[name]
    lefts, rights = integers(problem)
    if KERNELS[variant].accepts(problem, DeviceLimits()) is not None:
        with pytest.raises(ArgumentError, match="n-to-m"):
            correlate_on_host(host_builds, lefts, rights, problem, variant)
        return
    planes = correlate_on_host(host_builds, lefts, rights, problem, variant)
    np.testing.assert_array_equal(planes, planes_by_definition(lefts, rights, problem))


@pytest.mark.parametrize("variant", ["overlap-wise", "warp-shuffle", "combined", "row-product"])
@pytest.mark.parametrize("dtype", [name for name in INPUT_TYPES if name != "float32"])
def test_integers_are_converted_on_load(host_builds, variant, dtype):
    problem = Problem((10, 33), (9, 36), (-8, -20), (18, 40), lefts=2, rights=2)
    lefts, rights = integers(problem, dtype)
    info = np.iinfo(dtype)
    lefts[0, 0, :2], rights[0, -1, -2:] = (info.min, info.max), (1, 0)
    planes = correlate_on_host(host_builds, lefts, rights, problem, variant)
    np.testing.assert_array_equal(planes, planes_by_definition(lefts, rights, problem))


TUNED = [
    *product(["combined"], COMBINED_TILES, [Problem((41, 37), (29, 44), (-14, -21), (38, 39), lefts=2, rights=2)]),
    *product(["row-product"], ROW_PIECES, PIECES),
]


@pytest.mark.parametrize(("variant", "tuning", "problem"), TUNED)
def test_every_kind_of_tile_and_piece(host_builds, variant, tuning, problem):
    lefts, rights = integers(problem)
    planes = correlate_on_host(host_builds, lefts, rights, problem, variant, tuning=tuning)
    np.testing.assert_array_equal(planes, planes_by_definition(lefts, rights, problem))


@pytest.mark.share(4)
@pytest.mark.parametrize("problem", N_TO_M)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("variant", "tuning"), TILES)
def test_rows_distributed(host_builds, variant, tuning, rows, problem):
    lefts, rights = integers(problem)
    planes = correlate_on_host(host_builds, lefts, rights, problem, variant, tuning={**tuning, **rows})
    np.testing.assert_array_equal(planes, planes_by_definition(lefts, rights, problem))
