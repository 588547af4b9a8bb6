"""The kernels of several matrices and rows a thread, by shuffles: every option, against the definition in float64."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.definition import planes_by_definition
from tests.kernels.host_device import correlate_on_host
from tests.kernels.test_correlation_on_host import integers
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


BLOCKS = [
    ("overlap-wise", {"THREADS": 1}),
    ("overlap-wise", {"THREADS": 96}),
    ("shift-per-warp", {"SHIFTS_PER_BLOCK": 1}),
    ("shift-per-warp", {"SHIFTS_PER_BLOCK": 7}),
    ("warp-shuffle", {"WARPS": 1}),
    ("warp-shuffle", {"WARPS": 9}),
    ("warp-shuffle-distributed", {"WARPS": 6}),
]
