"""Planes of small matrices, each made by one block, on a device against float64: off by the rounding to fp16."""

from __future__ import annotations

import numpy as np
import pytest

from tests.device import NEEDS_DEVICE
from tests.gpu.kernels.test_hankel_on_device import centred, matrices, norms, sums
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.summed_area import SummedAreaTables
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.tensor.planes import plain_sums
from xcorr_app.gpu.tensor.small_planes import small_planes_launch

pytestmark = NEEDS_DEVICE

PROBLEMS = {
    "full planes, n-to-m": Problem.full_plane((64, 64), (64, 64), lefts=5, rights=6, rights_per_left=6),
    "full planes, two rights a block": Problem.full_plane((64, 64), (64, 64), lefts=24, rights=24, rights_per_left=24),
    "full planes, four rights a block": Problem.full_plane((32, 30), (31, 32), lefts=18, rights=63, rights_per_left=63),
    "full planes, n-to-mn": Problem.full_plane((32, 32), (32, 32), lefts=4, rights=12, rights_per_left=3),
    "full planes off quads": Problem.full_plane((43, 51), (50, 39), lefts=7, rights=7),
    "window": Problem((64, 60), (57, 64), (-16, -16), (33, 33), rights=9, rights_per_left=9),
    "many over one right": Problem((21, 36), (23, 40), (-6, -9), (13, 17), lefts=5),
    "beyond the matrices": Problem((9, 7), (6, 8), (-12, -40), (30, 66)),
}


def assert_planes(cupy, lefts, rights, problem, split=1):
    device = device_limits(current_device())
    types = {"left_type": str(lefts.dtype), "right_type": str(rights.dtype)}
    chosen = small_planes_launch(problem, device=device, split=split, **types)
    assert split == 2 or chosen is not None
    planes = cupy.full((problem.pairs, *problem.plane_shape), cupy.nan, cupy.float32)
    on_device = cupy.asarray(lefts), cupy.asarray(rights)
    kernel = "hankel" if chosen is None else "small-planes"
    plain_sums(problem, *on_device, SummedAreaTables(problem), kernel, split=split, out=planes)
    varying, whole = norms(centred(lefts), centred(rights)), norms(lefts.astype(float), rights.astype(float))
    expected = sums(lefts.astype(float), rights.astype(float), problem)
    error = varying * 2**-10 + whole * 1e-6 if split == 1 else whole * 1e-6
    np.testing.assert_allclose(planes.get(), expected, rtol=0, atol=error)
    again = plain_sums(problem, *on_device, SummedAreaTables(problem), kernel, split=split)
    np.testing.assert_array_equal(again.get(), planes.get())


@pytest.mark.parametrize("split", [1, 2])
@pytest.mark.parametrize("name", PROBLEMS)
def test_planes_equal_the_definition(cupy, name, split):
    problem = PROBLEMS[name]
    lefts, rights = matrices(problem.left_shape, problem.lefts), matrices(problem.right_shape, problem.rights, seed=2)
    assert_planes(cupy, lefts - np.float32(1000), rights, problem, split)


def test_split_fp16_where_sums_are_as_large_as_norms(cupy):
    """A matrix against itself: what tensor cores cut off would not cancel."""
    problem = PROBLEMS["full planes, two rights a block"]
    lefts = matrices(problem.left_shape, problem.lefts) - np.float32(1000)
    assert_planes(cupy, lefts, lefts, problem, split=2)


@pytest.mark.parametrize("scales", [(1e30, 1e-30), (1e36, 1e-33), (1e-33, 1)])
@pytest.mark.parametrize("split", [1, 2])
def test_values_far_from_one(cupy, split, scales):
    problem = PROBLEMS["full planes off quads"]
    rng = np.random.default_rng(6)
    shapes = (problem.lefts, *problem.left_shape), (problem.rights, *problem.right_shape)
    lefts, rights = (
        (rng.uniform(-1, 1, shape) * scale).astype(np.float32) for shape, scale in zip(shapes, scales, strict=True)
    )
    assert_planes(cupy, lefts, rights, problem, split)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
@pytest.mark.parametrize("name", ["full planes off quads", "window"])
def test_every_type(cupy, name, dtype):
    problem = PROBLEMS[name]
    lefts = matrices(problem.left_shape, problem.lefts, dtype)
    rights = matrices(problem.right_shape, problem.rights, dtype, seed=2)
    assert_planes(cupy, lefts, rights, problem)
    assert_planes(cupy, lefts.astype(np.float32), rights, problem)
