"""Values far from one in half precision, by the tensor-core kernels on a device."""

from __future__ import annotations

import numpy as np
import pytest

from tests.gpu.kernels.test_hankel_on_device import (
    PROBLEMS,
    assert_near,
    centred,
    computed,
    kernel_for,
    matrices,
    norms,
    sums,
)
from xcorr_app.gpu.peaks.summed_area import SummedAreaTables
from xcorr_app.gpu.tensor.planes import plain_sums

pytestmark = pytest.mark.gpu

NAMES = ["one-to-many", "many over one right", "one pair"]


def scaled(problem, *scales):
    """Noise around zero whose largest value is the scale. (Near 1e-38 a device would take small values for zero.)"""
    lefts, rights = matrices(problem.left_shape, problem.lefts), matrices(problem.right_shape, problem.rights, seed=2)
    parts = [part.astype(np.float64) - 1000 for part in (lefts, rights)]
    return [(part / abs(part).max() * scale).astype(np.float32) for part, scale in zip(parts, scales, strict=True)]


@pytest.mark.parametrize("scales", [(1e30, 1e-30), (1e-30, 1e30), (1e30, 1), (1, 1e-30), (8e37, 1e-33), (1e-33, 8e37)])
@pytest.mark.parametrize(("split", "bound"), [(1, 2e-4), (2, 1e-6)])
@pytest.mark.parametrize("name", NAMES)
def test_scaling_loses_nothing(cupy, name, split, bound, scales):
    problem = PROBLEMS[name]
    lefts, rights = scaled(problem, *scales)
    ours = computed(cupy, lefts, rights, problem, split=split)
    assert_near(ours, lefts, rights, problem, bound)
    on_device, kernel = (cupy.asarray(lefts), cupy.asarray(rights)), kernel_for(problem, split)
    plain = plain_sums(problem, *on_device, SummedAreaTables(problem), kernel, split=split).get()
    exact = sums(lefts.astype(np.float64), rights.astype(np.float64), problem)
    np.testing.assert_allclose(plain, exact, rtol=0, atol=bound * norms(centred(lefts), centred(rights)))


@pytest.mark.parametrize("split", [1, 2])
def test_what_leaves_single_precision_is_the_sums_themselves(cupy, split):
    problem = PROBLEMS["one-to-many"]
    large = scaled(problem, 1e30, 1e30)
    planes = computed(cupy, *large, problem, split=split)
    exact = sums(centred(large[0]), centred(large[1]), problem)
    certain = abs(exact) > 1e-2 * abs(exact).max()
    assert (planes[certain] == np.sign(exact[certain]) * np.inf).all()
    assert not np.isnan(planes).any()
    assert (computed(cupy, *scaled(problem, 1e-30, 1e-30), problem, split=split) == 0).all()


@pytest.mark.parametrize("split", [1, 2])
@pytest.mark.parametrize("level", [1.0, 1e30, 1e-30])
def test_differences_of_one_bit(cupy, split, level):
    problem = PROBLEMS["one-to-many"]
    rng = np.random.default_rng(5)
    shapes = (problem.lefts, *problem.left_shape), (problem.rights, *problem.right_shape)
    lefts, rights = (1 + rng.integers(0, 2, shape).astype(np.float32) * np.float32(2**-23) for shape in shapes)
    assert np.isfinite(computed(cupy, np.float32(level) * lefts, rights, problem, split=split)).all()
