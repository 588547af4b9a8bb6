"""The kernels of several matrices and rows a thread, by shuffles: every option, against the definition in float64."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.definition import planes_by_definition
from tests.kernels.host_device import correlate_on_host
from tests.kernels.test_correlation_on_host import PROBLEMS, integers
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.direct.kernels import KERNELS, STAGED
from xcorr_app.gpu.direct.problem import Problem

SHAPES = [
    ("multi-right", {"RIGHTS": 3, "WARPS": 2}),
    ("multi-left-right", {"LEFTS": 2, "RIGHTS": 3, "WARPS": 5}),
    ("multi-row", {"SHIFTS": 3, "LEFT_ROWS": 2, "WARPS": 8}),
    ("multi-row", {"SHIFTS": 8, "LEFT_ROWS": 4, "WARPS": 1, "PHASES": 1}),
    ("multi-row", {"SHIFTS": 2, "LEFT_ROWS": 5, "PHASES": 1}),
    ("combined-shuffle", {"LEFTS": 2, "RIGHTS": 3, "SHIFTS": 3, "LEFT_ROWS": 2}),
    ("combined-shuffle", {"PHASES": 1, "WARPS": 3}),
]
N_TO_M = [
    Problem((20, 31), (9, 35), (-10, -40), (31, 70), lefts=3, rights=4, rights_per_left=4),
    Problem((9, 33), (21, 30), (-25, -3), (37, 7), lefts=1, rights=5, rights_per_left=5),
    Problem((9, 33), (8, 31), (-30, -2), (11, 5), lefts=3, rights=4, rights_per_left=4),  # shifts without any overlap
]


@pytest.mark.share(4)
@pytest.mark.parametrize("problem", N_TO_M)
@pytest.mark.parametrize(
    "distribution", [{"DISTRIBUTION": d, "MAX_ROWS": m} for d, m in ((0, 1), (1, 5), (2, 1), (2, 7))]
)
@pytest.mark.parametrize(("variant", "tuning"), SHAPES)
def test_rows_distributed(host_builds, variant, tuning, distribution, problem):
    lefts, rights = integers(problem)
    planes = correlate_on_host(host_builds, lefts, rights, problem, variant, tuning={**tuning, **distribution})
    np.testing.assert_array_equal(planes, planes_by_definition(lefts, rights, problem))


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("tuning", [{"SHIFTS": 4, "LEFT_ROWS": 4}, {"SHIFTS": 1, "LEFT_ROWS": 3}])
@pytest.mark.parametrize("variant", ["multi-row", "combined-shuffle"])
def test_phases_change_nothing(host_builds, variant, tuning, name):
    problem = PROBLEMS[name]
    lefts, rights = integers(problem)
    planes = correlate_on_host(host_builds, lefts, rights, problem, variant, tuning={**tuning, "PHASES": 1})
    np.testing.assert_array_equal(planes, planes_by_definition(lefts, rights, problem))


BLOCKS = [
    ("overlap-wise", {"THREADS": 1}),
    ("overlap-wise", {"THREADS": 96}),
    ("shift-per-warp", {"SHIFTS_PER_BLOCK": 1}),
    ("shift-per-warp", {"SHIFTS_PER_BLOCK": 7}),
    ("row-per-warp", {"WARPS": 3}),
    ("warp-shuffle", {"WARPS": 1}),
    ("warp-shuffle", {"WARPS": 9}),
    ("warp-shuffle-distributed", {"WARPS": 6}),
]


@pytest.mark.share(2)
@pytest.mark.parametrize(("variant", "tuning"), BLOCKS)
def test_blocks_of_any_size(host_builds, variant, tuning):
    problem = N_TO_M[0]
    lefts, rights = integers(problem)
    planes = correlate_on_host(host_builds, lefts, rights, problem, variant, tuning=tuning)
    np.testing.assert_array_equal(planes, planes_by_definition(lefts, rights, problem))


@pytest.mark.parametrize("tuning", [{}, {"DISTRIBUTION": 2, "MAX_ROWS": 3}])
@pytest.mark.parametrize("variant", [name for name in KERNELS if name not in STAGED])
def test_elements_and_sums_of_float64(host_builds, variant, tuning):
    if tuning and "DISTRIBUTION" not in KERNELS[variant].tunables:
        tuning = {}
    problem = Problem((13, 35), (11, 31), (-9, -6), (20, 17), lefts=2, rights=3, rights_per_left=3)
    rng = np.random.default_rng(7)
    lefts, rights = rng.normal(1e5, 1, (2, 13, 35)), rng.normal(-1e5, 1, (3, 11, 31))
    planes = correlate_on_host(host_builds, lefts, rights, problem, variant, sum_type="double", tuning=tuning)
    np.testing.assert_allclose(planes, planes_by_definition(lefts, rights, problem), rtol=1e-13)


@pytest.mark.parametrize("variant", sorted(STAGED))
def test_who_stages_float32_refuses_float64(variant):
    problem = Problem.full_plane((9, 9), (9, 9))
    with pytest.raises(ArgumentError, match=f"{variant} with sums of double reads uint8.*, not float64"):
        KERNELS[variant].launch(problem, left_type="float64", right_type="float64", sum_type="double")
    with pytest.raises(ArgumentError, match="convert the matrices"):
        KERNELS["multi-row"].launch(problem, left_type="float64", right_type="float64")


def test_what_does_not_fit_registers_is_refused():
    problem = Problem.full_plane((9, 9), (9, 9), lefts=4, rights=4, rights_per_left=4)
    whole = {"LEFTS": 4, "RIGHTS": 4, "SHIFTS": 4, "LEFT_ROWS": 4}
    assert KERNELS["combined-shuffle"].launch(problem, tuning=whole).defines["SHIFTS"] == 4
    with pytest.raises(ArgumentError, match="do not fit its registers with sums of double"):
        KERNELS["combined-shuffle"].launch(problem, tuning=whole, sum_type="double")
    own = Problem.full_plane((9, 9), (9, 9), lefts=2, rights=6, rights_per_left=3)
    assert KERNELS["combined-shuffle"].launch(own).defines["LEFTS"] == 1
    with pytest.raises(ArgumentError, match="n-to-m"):
        KERNELS["combined-shuffle"].launch(own, tuning={"LEFTS": 2})
