"""The tensor-core kernel's own source, run on the host, against the definition in float64."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.definition import planes_by_definition
from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor.hankel import hankel_launch, moving_is_left

SMALL = {"WARPS": 4, "STEP_ROWS": 2, "PANEL": 64}
WARPGROUP = {"WARPS": 2, "STEP_ROWS": 4, "PANEL": 128}


def moments(matrices):
    """Tables of one cell: sum and sum of squares of each matrix."""
    flat = matrices.reshape(matrices.shape[0], -1).astype(np.float64)
    return np.stack([flat.sum(axis=1), (flat * flat).sum(axis=1)], axis=1)


def centred(matrices):
    means = matrices.reshape(matrices.shape[0], -1).astype(np.float64).mean(axis=1)
    if matrices.dtype.kind != "f":
        means = np.rint(means)
    return matrices.astype(np.float64) - means[:, None, None].astype(np.float32)


def sums_on_host(folder, lefts, rights, problem, *, tuning=None, split=1, warpgroup=False):
    types = {"left_type": str(lefts.dtype), "right_type": str(rights.dtype)}
    options = {**types, "tuning": tuning, "device": DeviceLimits(8)}
    chosen = hankel_launch(problem, split=split, warpgroup=warpgroup, **options)
    planes = guarded(np.full((problem.pairs, *problem.plane_shape), np.nan, np.float32))
    workspace, arrived = guarded(np.full(chosen.workspace, np.nan, np.float32)), np.zeros(chosen.counters, np.int32)
    of_lefts, of_rights = moments(lefts), moments(rights)
    arrays = [guarded(lefts), guarded(rights), planes, workspace, arrived, of_lefts, of_rights]
    if chosen.convert:
        plain, table = (rights, of_rights) if moving_is_left(problem) else (lefts, of_lefts)
        fp16 = guarded(np.full(chosen.fp16_words, 77, np.uint32))
        run_kernel(folder, chosen.convert, (plain, table, fp16), (*plain.shape[1:], 1, *chosen.convert.extra))
        assert guards_are_whole(fp16)
        arrays.insert(2, fp16)
    run_kernel(folder, chosen.launch, arrays, (*problem.arguments(), 1, 1, *chosen.launch.extra))
    assert guards_are_whole(planes)
    assert guards_are_whole(workspace)
    assert not arrived.any()
    return planes


def assert_close(planes, lefts, rights, problem, bound):
    exact = planes_by_definition(centred(lefts), centred(rights), problem)
    norm = np.sqrt((centred(lefts) ** 2).sum() / lefts.shape[0] * (centred(rights) ** 2).sum() / rights.shape[0])
    assert np.abs(exact).max() > 0.05 * norm  # there is something to find
    np.testing.assert_allclose(planes, exact, rtol=0, atol=bound * norm)


PROBLEMS = {
    "one pair": Problem((20, 24), (20, 24), (-4, -5), (9, 11)),
    "one-to-many": Problem((21, 37), (23, 35), (-16, -16), (32, 32), rights=5, rights_per_left=5),
    "many over one right": Problem((21, 36), (23, 40), (-6, -9), (13, 17), lefts=3),
    "n-to-mn": Problem((9, 33), (8, 31), (-3, -2), (7, 4), lefts=2, rights=6, rights_per_left=3),
    "n-to-m": Problem((15, 16), (14, 17), (-7, 3), (18, 9), lefts=2, rights=3, rights_per_left=3),
    "full plane": Problem.full_plane((17, 19), (16, 20)),
    "beyond the matrices": Problem((9, 5), (4, 8), (-12, -40), (30, 66)),
    "wider than a panel": Problem((5, 150), (6, 139), (-2, -20), (5, 33)),
    "one element": Problem.full_plane((1, 1), (1, 1)),
}


def images(problem, dtype="float32", seed=3):
    """Random matrices that share a pattern, so that the sums have a peak."""
    rng = np.random.default_rng(seed)
    size = [max(sizes) for sizes in zip(problem.left_shape, problem.right_shape, strict=True)]
    scene = rng.normal(1000, 100, size)
    (left_height, left_width), (right_height, right_width) = problem.left_shape, problem.right_shape
    lefts = scene[:left_height, :left_width] + rng.normal(0, 20, (problem.lefts, *problem.left_shape))
    rights = scene[:right_height, :right_width] + rng.normal(0, 20, (problem.rights, *problem.right_shape))
    if dtype == "uint8":
        lefts, rights = lefts / 8, rights / 8
    return lefts.astype(dtype), rights.astype(dtype)


@pytest.mark.parametrize("warpgroup", [False, True])
@pytest.mark.parametrize("name", PROBLEMS)
def test_centred_sums_equal_the_definition(host_builds, name, warpgroup):
    problem = PROBLEMS[name]
    lefts, rights = images(problem)
    tuning = WARPGROUP if warpgroup else SMALL
    planes = sums_on_host(host_builds, lefts, rights, problem, tuning=tuning, warpgroup=warpgroup)
    if name == "one element":  # of zero mean
        assert planes == 0
        return
    assert_close(planes, lefts, rights, problem, 1e-3)


@pytest.mark.parametrize("warpgroup", [False, True])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
@pytest.mark.parametrize("name", ["one-to-many", "many over one right"])
def test_integers_of_eleven_bits_are_exact(host_builds, name, dtype, warpgroup):
    problem = PROBLEMS[name]
    lefts, rights = images(problem, dtype)
    tuning = WARPGROUP if warpgroup else SMALL
    planes = sums_on_host(host_builds, lefts, rights, problem, tuning=tuning, warpgroup=warpgroup)
    assert_close(planes, lefts, rights, problem, 1e-6)


def test_lefts_slide_over_the_only_right():
    assert moving_is_left(PROBLEMS["many over one right"])
    assert not moving_is_left(PROBLEMS["one-to-many"])
    assert not moving_is_left(PROBLEMS["one pair"])
