"""The kernels for many frames against one reference, their own source run on the host, against the definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from tests.kernels.test_hankel_on_host import PROBLEMS, assert_close, images, moments
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor.hankel import moving_is_left
from xcorr_app.gpu.tensor.hankel_frames import frames_launch

SMALL = {"EX_TILES": 1, "N_TILES": 8, "PANEL": 32, "SETS": 2, "SET_WARPS": 1, "FRAME_BUFFERS": 2}


def sums_on_host(folder, lefts, rights, problem, tuning=None):
    types = {"left_type": str(lefts.dtype), "right_type": str(rights.dtype)}
    chosen = frames_launch(problem, **types, tuning=tuning, device=DeviceLimits(8))
    planes = guarded(np.full((problem.pairs, *problem.plane_shape), np.nan, np.float32))
    workspace = guarded(np.full(chosen.workspace, np.nan, np.float32))
    places = guarded(np.full(chosen.hankel_words, 77, np.uint32))
    of_lefts, of_rights = moments(lefts), moments(rights)
    reference, table = (rights, of_rights) if moving_is_left(problem) else (lefts, of_lefts)
    lefts, rights = guarded(lefts), guarded(rights)
    sizes = (*problem.arguments(), 1, 1)
    run_kernel(folder, chosen.expand, (reference, table, places), (*reference.shape[1:], 1, *chosen.expand.extra))
    arrays = (lefts, rights, places, workspace, of_lefts, of_rights)
    run_kernel(folder, chosen.products, arrays, (*sizes, *chosen.products.extra))
    assert not np.isnan(workspace).any()
    run_kernel(folder, chosen.sums, (workspace, planes, of_lefts, of_rights), (*sizes, *chosen.sums.extra))
    assert all(guards_are_whole(array) for array in (places, workspace, planes))
    return planes


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name != "one element"])
def test_centred_sums_equal_the_definition(host_builds, name):
    lefts, rights = images(PROBLEMS[name])
    planes = sums_on_host(host_builds, lefts, rights, PROBLEMS[name], SMALL)
    assert_close(planes, lefts, rights, PROBLEMS[name], 1e-3)


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
@pytest.mark.parametrize("name", ["one-to-many", "many over one right"])
def test_integers_of_eleven_bits_are_exact(host_builds, name, dtype):
    for columns in (36, 37):  # rows of whole quads, and others
        shape = PROBLEMS[name].left_shape[0], columns
        problem = replace(PROBLEMS[name], left_shape=shape, right_shape=shape)
        lefts, rights = images(problem, dtype)
        assert_close(sums_on_host(host_builds, lefts, rights, problem, SMALL), lefts, rights, problem, 1e-6)


def test_frames_do_not_touch_each_other(host_builds):
    """Constant, hot, huge and tiny frames in one product: each as exact as if alone, and the constant one zero."""
    problem = Problem((30, 40), (30, 40), (-4, -4), (8, 8), rights=5, rights_per_left=5)
    lefts, rights = images(problem)
    rights[1] = 0.25
    rights[2, 7, 9] = 65535
    rights[3] *= np.float32(1e30)
    rights[4] *= np.float32(1e-30)
    planes = sums_on_host(host_builds, lefts, rights, problem, SMALL)
    assert not planes[1].any()
    for frame in (0, 2, 3, 4):
        alone = replace(problem, rights=1, rights_per_left=1)
        assert_close(planes[[frame]], lefts, rights[[frame]], alone, 1e-3)
