"""The tensor-core kernels run on the host, against the definition in float64; launches that fit a device."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from tests.kernels.correlation_definition import planes_by_definition
from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor.hankel import hankel_launch, moving_is_left
from xcorr_app.gpu.tensor.hankel_frames import frames_launch

SMALL = {"tuning": {"WARPS": 4, "STEP_ROWS": 2, "PANEL": 64}}
WARPGROUP = {"tuning": {"WARPS": 2, "STEP_ROWS": 4, "PANEL": 128}, "warpgroup": True}
TUNING = {"EX_TILES": 1, "N_TILES": 8, "PANEL": 32, "SETS": 2, "SET_WARPS": 1, "FRAME_BUFFERS": 2}
"""Of the kernels for many frames."""


def moments(matrices):
    """Tables of one cell: sum and sum of squares of each matrix."""
    flat = matrices.reshape(matrices.shape[0], -1).astype(np.float64)
    return np.stack([flat.sum(axis=1), (flat * flat).sum(axis=1)], axis=1)


def centred(matrices):
    means = matrices.reshape(matrices.shape[0], -1).astype(np.float64).mean(axis=1)
    if matrices.dtype.kind != "f":
        means = np.rint(means)
    return matrices.astype(np.float64) - means[:, None, None].astype(np.float32)


def planes_by_hankel(folder, lefts, rights, problem, **options):
    types = {"left_type": str(lefts.dtype), "right_type": str(rights.dtype)}
    chosen = hankel_launch(problem, **types, device=DeviceLimits(8), **options)
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


def planes_of_frames(folder, lefts, rights, problem):
    types = {"left_type": str(lefts.dtype), "right_type": str(rights.dtype)}
    chosen = frames_launch(problem, **types, tuning=TUNING, device=DeviceLimits(8))
    planes = guarded(np.full((problem.pairs, *problem.plane_shape), np.nan, np.float32))
    workspace = guarded(np.full(chosen.workspace, np.nan, np.float32))
    places = guarded(np.full(chosen.hankel_words, 77, np.uint32))
    of_lefts, of_rights = moments(lefts), moments(rights)
    reference, table = (rights, of_rights) if moving_is_left(problem) else (lefts, of_lefts)
    sizes = (*problem.arguments(), 1, 1)
    run_kernel(folder, chosen.expand, (reference, table, places), (*reference.shape[1:], 1, *chosen.expand.extra))
    arrays = (guarded(lefts), guarded(rights), places, workspace, of_lefts, of_rights)
    run_kernel(folder, chosen.products, arrays, (*sizes, *chosen.products.extra))
    assert not np.isnan(workspace).any()
    run_kernel(folder, chosen.sums, (workspace, planes, of_lefts, of_rights), (*sizes, *chosen.sums.extra))
    assert all(guards_are_whole(array) for array in (places, workspace, planes))
    return planes


WAYS = {
    "fp16": lambda *given: planes_by_hankel(*given, **SMALL),
    "split fp16": lambda *given: planes_by_hankel(*given, split=2, **SMALL),
    "four warps": lambda *given: planes_by_hankel(*given, **WARPGROUP),
    "many frames": planes_of_frames,
}


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


@pytest.mark.parametrize("way", ["fp16", "four warps", "many frames"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_centred_sums_equal_the_definition(host_builds, name, way):
    lefts, rights = images(PROBLEMS[name])
    assert_close(WAYS[way](host_builds, lefts, rights, PROBLEMS[name]), lefts, rights, PROBLEMS[name], 1e-3)


@pytest.mark.parametrize("way", ["fp16", "four warps"])
def test_one_element_of_zero_mean(host_builds, way):
    problem = Problem.full_plane((1, 1), (1, 1))
    assert WAYS[way](host_builds, *images(problem), problem) == 0


@pytest.mark.parametrize("way", ["fp16", "four warps", "many frames"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
@pytest.mark.parametrize("name", ["one-to-many", "many over one right"])
def test_integers_of_eleven_bits_are_exact(host_builds, name, dtype, way):
    for columns in (36, 37):  # rows of whole quads, and others
        shape = PROBLEMS[name].left_shape[0], columns
        problem = replace(PROBLEMS[name], left_shape=shape, right_shape=shape)
        lefts, rights = images(problem, dtype)
        assert_close(WAYS[way](host_builds, lefts, rights, problem), lefts, rights, problem, 1e-6)


def test_frames_do_not_touch_each_other(host_builds):
    """Constant, hot, huge and tiny frames in one product: each as exact as if alone, and the constant one zero."""
    problem = Problem((30, 40), (30, 40), (-4, -4), (8, 8), rights=5, rights_per_left=5)
    lefts, rights = images(problem)
    rights[1] = 0.25
    rights[2, 7, 9] = 65535
    rights[3] *= np.float32(1e30)
    rights[4] *= np.float32(1e-30)
    planes = planes_of_frames(host_builds, lefts, rights, problem)
    assert not planes[1].any()
    for frame in (0, 2, 3, 4):
        alone = replace(problem, rights=1, rights_per_left=1)
        assert_close(planes[[frame]], lefts, rights[[frame]], alone, 1e-3)


@pytest.mark.parametrize(("way", "bound"), [("fp16", 1e-3), ("split fp16", 1e-6), ("four warps", 1e-3)])
@pytest.mark.parametrize("name", ["one-to-many", "many over one right"])
@pytest.mark.parametrize(
    "scales",
    [(1e30, 1e-30), (1e-30, 1e30), (1e30, 1), (1, 1e30), (1e-30, 1), (1, 1e-30), (8e37, 1e-36), (1e-36, 8e37)],
)
def test_scaling_loses_nothing(host_builds, name, way, bound, scales):
    """Values far from one in half precision."""
    parts = [part.astype(np.float64) - 1000 for part in images(PROBLEMS[name])]
    lefts, rights = (
        (part / abs(part).max() * scale).astype(np.float32) for part, scale in zip(parts, scales, strict=True)
    )
    planes = WAYS[way](host_builds, lefts, rights, PROBLEMS[name])
    assert np.isfinite(planes).all()
    assert_close(planes, lefts, rights, PROBLEMS[name], bound)


@pytest.mark.parametrize("split", [1, 2])
@pytest.mark.parametrize("rights", [1, 8])
def test_blocks_fit_the_least_shared_memory(split, rights):
    for height, width in itertools.product((5, 15, 33, 49, 63, 64, 103, 127, 129), repeat=2):
        problem = Problem((512, 512), (512, 512), (0, 0), (height, width), rights=rights, rights_per_left=rights)
        for device in (DeviceLimits(), DeviceLimits(132, 227 * 1024)):
            assert hankel_launch(problem, split=split, device=device).launch.shared_bytes <= device.shared_bytes
            if split == 1 and device.shared_bytes > 200 * 1024:
                launch = hankel_launch(problem, warpgroup=True, device=device).launch
                assert launch.shared_bytes <= device.shared_bytes


@pytest.mark.parametrize(("size", "fewest", "most"), [(512, 1, 1), (2048, 8, 1 << 16)])
def test_large_matrices_are_cut_so_that_few_products_add_to_one_sum(size, fewest, most):
    problem = Problem((size, size), (size, size), (-16, -16), (33, 33), lefts=10000, rights=10000)
    assert fewest <= hankel_launch(problem).launch.segments <= most
