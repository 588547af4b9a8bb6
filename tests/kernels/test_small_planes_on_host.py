"""The kernel that makes planes of small matrices, its own source run on the host, against the definition in float64."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from tests.kernels.test_small_hankel_on_host import DEVICE, PROBLEMS
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.tensor.small_planes import small_planes_launch


def plane(left, right, problem):
    """Plain sums by the definition."""
    left, right = left.astype(float), right.astype(float)
    sums = np.zeros(problem.plane_shape)
    for iy, ix in np.ndindex(*problem.plane_shape):
        dy, dx = problem.first_shift[0] + iy, problem.first_shift[1] + ix
        rows = slice(max(0, -dy), max(0, min(right.shape[0], left.shape[0] - dy)))
        columns = slice(max(0, -dx), max(0, min(right.shape[1], left.shape[1] - dx)))
        if rows.start < rows.stop and columns.start < columns.stop:
            of_left = left[rows.start + dy : rows.stop + dy, columns.start + dx : columns.stop + dx]
            sums[iy, ix] = (of_left * right[rows, columns]).sum()
    return sums


def assert_planes(folder, lefts, rights, problem, *, split=1, tuning=None):
    """Off by 2^-10 of the norms of the centred matrices (2^-21 of two halves), and by single precision beyond that."""
    types = {"left_type": str(lefts.dtype), "right_type": str(rights.dtype)}
    launch = small_planes_launch(problem, device=DEVICE, split=split, tuning=tuning, **types)
    planes = guarded(np.full((problem.pairs, *problem.plane_shape), np.nan, np.float32))
    numbers = (problem.rights_per_left, problem.rights)
    run_kernel(folder, launch, (guarded(lefts), guarded(rights), planes), numbers)
    assert guards_are_whole(planes)
    for pair in range(problem.pairs):
        left, right = lefts[pair // problem.rights_per_left], rights[pair % problem.rights]
        norms = [np.sqrt((values.astype(float) ** 2).sum()) for values in (left, right)]
        varying = [values.std(dtype=float) * np.sqrt(values.size) for values in (left, right)]
        error = 2.0 ** (-10 if split == 1 else -21) * np.prod(varying) + 5e-7 * np.prod(norms)
        np.testing.assert_allclose(planes[pair], plane(left, right, problem), rtol=0, atol=error)
    return planes


def noise(problem, seed, dtype="float32"):
    rng = np.random.default_rng(seed)
    sizes = (problem.lefts, *problem.left_shape), (problem.rights, *problem.right_shape)
    return (np.rint(rng.normal(100, 25, size).clip(0, 255)).astype(dtype) for size in sizes)


FULL = {
    "full plane of the benchmark": Problem.full_plane((64, 64), (64, 64), rights=2, rights_per_left=2),
    "full plane off quads": Problem.full_plane((43, 51), (50, 39), lefts=2, rights=2),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("split", [1, 2])
@pytest.mark.parametrize("name", [*PROBLEMS, *FULL])
def test_planes_equal_the_definition(host_builds, name, split):
    problem = (PROBLEMS | FULL)[name]
    rng = np.random.default_rng(5)
    lefts = rng.normal(size=(problem.lefts, *problem.left_shape)).astype(np.float32)
    rights = rng.normal(size=(problem.rights, *problem.right_shape)).astype(np.float32)
    assert_planes(host_builds, lefts, rights, problem, split=split)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
def test_every_type(host_builds, dtype):
    problem = PROBLEMS["columns off quads"]
    assert_planes(host_builds, *noise(problem, 4, dtype), problem)
