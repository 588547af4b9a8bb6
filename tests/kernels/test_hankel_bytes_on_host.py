"""The tensor-core kernel for bytes, its own source run on the host: bit for bit what the definition gives in int64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.kernels.host_device import guarded, guards_are_whole, run_launch
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor.hankel_bytes import hankel_bytes_launch

FEW_MULTIPROCESSORS = DeviceLimits(1)


def plane_by_definition(left, right, problem):
    """Plain sums in whole numbers."""
    left, right = left.astype(np.int64), right.astype(np.int64)
    plane = np.zeros(problem.plane_shape, np.int64)
    for iy, ix in np.ndindex(*problem.plane_shape):
        dy, dx = problem.first_shift[0] + iy, problem.first_shift[1] + ix
        y0, y1 = max(0, -dy), min(right.shape[0], left.shape[0] - dy)
        x0, x1 = max(0, -dx), min(right.shape[1], left.shape[1] - dx)
        if y1 > y0 and x1 > x0:
            plane[iy, ix] = np.sum(left[y0 + dy : y1 + dy, x0 + dx : x1 + dx] * right[y0:y1, x0:x1])
    return plane


def sums_on_host(folder, lefts, rights, problem, *, tuning=None, device=FEW_MULTIPROCESSORS):
    launch = hankel_bytes_launch(problem, tuning=tuning, device=device)
    assert launch.zero_first
    planes = guarded(np.zeros((problem.pairs, *problem.plane_shape), np.int64))
    run_launch(folder, launch, problem, (guarded(lefts), guarded(rights), planes))
    assert guards_are_whole(planes)
    return planes


def assert_exact(folder, lefts, rights, problem, **options):
    planes = sums_on_host(folder, lefts, rights, problem, **options)
    for pair, plane in enumerate(planes):
        left, right = lefts[pair // problem.rights_per_left], rights[pair % problem.rights]
        np.testing.assert_array_equal(plane, plane_by_definition(left, right, problem))


def bytes_of(rng, problem):
    shapes = (problem.lefts, *problem.left_shape), (problem.rights, *problem.right_shape)
    return [rng.integers(0, 256, shape, dtype=np.uint8) for shape in shapes]


PROBLEMS = {
    "one-to-one": Problem((20, 24), (20, 24), (-4, -5), (9, 11)),
    "one-to-many": Problem((21, 37), (23, 35), (-16, -16), (32, 32), rights=5, rights_per_left=5),
    "many over one right": Problem((21, 36), (23, 40), (-6, -9), (13, 17), lefts=3),
    "n-to-mn": Problem((9, 33), (8, 31), (-3, -2), (7, 4), lefts=2, rights=6, rights_per_left=3),
    "n-to-m": Problem((15, 16), (14, 17), (-7, 3), (18, 9), lefts=2, rights=3, rights_per_left=3),
    "whole chunks": Problem((18, 48), (17, 64), (-5, -20), (11, 41), lefts=2, rights=4, rights_per_left=2),
    "full plane": Problem.full_plane((17, 19), (16, 20)),
    "beyond the matrices": Problem((9, 5), (4, 8), (-12, -40), (30, 66)),
    "wider than a panel": Problem((5, 150), (6, 139), (-2, -20), (5, 33)),
    "no overlap at all": Problem((7, 8), (6, 9), (20, -50), (3, 4), rights=2, rights_per_left=2),
    "one element": Problem.full_plane((1, 1), (1, 1)),
    "window of 33": Problem((40, 40), (40, 40), (-16, -16), (33, 33)),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_sums_are_exact(host_builds, rng, name):
    problem = PROBLEMS[name]
    assert_exact(host_builds, *bytes_of(rng, problem), problem)


@pytest.mark.parametrize("shift", [0, 1])
def test_sums_beyond_32_bits(host_builds, shift):
    """Bright matrices of 300 x 320 make 96000 products a shift: three times what 32 bits hold."""
    problem = Problem((300, 320), (300, 320), (shift, -shift), (1, 2))
    bright = np.full((1, 300, 320), 255, np.uint8)
    assert plane_by_definition(bright[0], bright[0], problem).max() > 2 * 2**31
    assert_exact(host_builds, bright, bright, problem, device=DeviceLimits(1))
    # One warp a row and long panels: as many products of one sum as there may be.
    tuning = {"M_TILES": 1, "N_TILES": 2, "WARPS": 1, "STEP_ROWS": 1, "PANEL": 512, "FRAMES": 1}
    launch = hankel_bytes_launch(problem, tuning=tuning, device=DeviceLimits(1))
    assert launch.extra[3] == 33025 // 512
    assert_exact(host_builds, bright, bright, problem, tuning=tuning)


def test_no_sum_of_a_warp_passes_32_bits():
    for size, side, pairs in itertools.product((16, 64, 100, 513, 3000, 70000), (1, 33, 64), (1, 2, 5000)):
        problem = Problem((size, size), (size, size), (0, 0), (side, side), rights=pairs, rights_per_left=pairs)
        launch = hankel_bytes_launch(problem)
        macros, (_, _, segments, segment_rows, panels) = launch.defines, launch.extra
        parts = macros["WARPS"] // macros["STEP_ROWS"]
        products = -(-segment_rows // macros["STEP_ROWS"]) * macros["PANEL"] // parts
        assert products * 255**2 < 2**31
        assert segments * segment_rows >= size
        assert panels * macros["PANEL"] >= size
        assert launch.shared_bytes <= DeviceLimits().shared_bytes
