"""Values far from one in half precision: the tensor-core kernels' own source, run on the host."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels import test_hankel_on_host as hankel
from tests.kernels.definition import planes_by_definition
from xcorr_app.gpu.direct.problem import Problem

PROBLEMS = {name: hankel.PROBLEMS[name] for name in ("one-to-many", "many over one right")}
KINDS = {
    "halves": ({"split": 1, "tuning": hankel.SMALL}, 1e-3),
    "two halves": ({"split": 2, "tuning": hankel.SMALL}, 1e-6),
    "four warps": ({"warpgroup": True, "tuning": hankel.WARPGROUP}, 1e-3),
}
LARGEST = float(np.finfo(np.float32).max)


def scaled_images(problem, *scales):
    """Images whose largest deviation from zero mean is about the scale."""
    matrices = [part.astype(np.float64) - 1000 for part in hankel.images(problem)]
    return [(part / abs(part).max() * scale).astype(np.float32) for part, scale in zip(matrices, scales, strict=True)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize(
    "scales",
    [(1e30, 1e-30), (1e-30, 1e30), (1e30, 1), (1, 1e30), (1e-30, 1), (1, 1e-30), (8e37, 1e-36), (1e-36, 8e37)],
)
def test_scaling_loses_nothing(host_builds, name, kind, scales):
    options, bound = KINDS[kind]
    problem = PROBLEMS[name]
    lefts, rights = scaled_images(problem, *scales)
    planes = hankel.sums_on_host(host_builds, lefts, rights, problem, **options)
    assert np.isfinite(planes).all()
    hankel.assert_close(planes, lefts, rights, problem, bound)


@pytest.mark.parametrize("kind", KINDS)
def test_what_leaves_single_precision_is_the_sums_themselves(host_builds, kind):
    options, _ = KINDS[kind]
    problem = PROBLEMS["one-to-many"]
    large = scaled_images(problem, 1e30, 1e30)
    planes = hankel.sums_on_host(host_builds, *large, problem, **options)
    exact = planes_by_definition(*map(hankel.centred, large), problem)
    certain = abs(exact) > 1e-2 * abs(exact).max()
    assert (planes[certain] == np.sign(exact[certain]) * np.inf).all()
    assert not np.isnan(planes).any()
    small = scaled_images(problem, 1e-30, 1e-30)
    assert (hankel.sums_on_host(host_builds, *small, problem, **options) == 0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", [1.0, 1e30, 1e-30])
def test_differences_of_one_bit(host_builds, monkeypatch, kind, level):
    """Their variance is below the rounding of the sums that it is made of: these may say that it is negative."""
    options, _ = KINDS[kind]
    problem = Problem((40, 40), (40, 40), (-3, -3), (7, 7), rights=2, rights_per_left=2)
    rng = np.random.default_rng(5)
    bits = [rng.integers(0, 2, (count, 40, 40)).astype(np.float32) for count in (1, 2)]
    left, rights = (np.float32(level) * (1 + part * np.float32(2**-23)) for part in bits)
    rights = rights / np.float32(level)  # the product is in range
    moments = hankel.moments

    def rounded(matrices):
        return moments(matrices) * (1, 1 - 1e-13)

    monkeypatch.setattr(hankel, "moments", rounded)
    planes = hankel.sums_on_host(host_builds, left, rights, problem, **options)
    assert np.isfinite(planes).all()
    exact = planes_by_definition(hankel.centred(left), hankel.centred(rights), problem)
    np.testing.assert_allclose(planes, exact, rtol=0, atol=2e-3 * abs(exact).max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", [0.0, 0.1, 1e30, 1e-30, LARGEST])
def test_constant_matrices_give_zero(host_builds, kind, level):
    options, _ = KINDS[kind]
    problem = Problem((21, 37), (23, 35), (-3, -3), (7, 7), rights=4, rights_per_left=4)
    _, rights = hankel.images(problem)
    left = np.full((1, *problem.left_shape), level, np.float32)
    np.testing.assert_array_equal(hankel.sums_on_host(host_builds, left, rights, problem, **options), 0)


@pytest.mark.parametrize("kind", KINDS)
def test_one_hot_pixel_in_a_dark_frame(host_builds, kind):
    options, bound = KINDS[kind]
    problem = Problem((64, 64), (64, 64), (-3, -3), (7, 7), rights=4, rights_per_left=4)
    rng = np.random.default_rng(6)
    left, rights = (rng.poisson(3, (count, 64, 64)).astype(np.uint16) for count in (1, 4))
    left[0, 20, 30] = rights[:, 22, 29] = 65535
    planes = hankel.sums_on_host(host_builds, left, rights, problem, **options)
    hankel.assert_close(planes, left, rights, problem, bound)
