"""Values far from one in half precision: the tensor-core kernels' own source, run on the host."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels import test_hankel_on_host as hankel

PROBLEMS = {name: hankel.PROBLEMS[name] for name in ("one-to-many", "many over one right")}
KINDS = {
    "halves": ({"split": 1, "tuning": hankel.SMALL}, 1e-3),
    "two halves": ({"split": 2, "tuning": hankel.SMALL}, 1e-6),
    "four warps": ({"warpgroup": True, "tuning": hankel.WARPGROUP}, 1e-3),
}


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
