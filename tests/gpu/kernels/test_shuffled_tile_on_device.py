"""The kernels that shuffle several matrices and rows a thread, on the device: every option, against float64."""

from __future__ import annotations

import numpy as np
import pytest

from tests.device import NEEDS_DEVICE
from tests.gpu.kernels.test_correlation_on_device import assert_equal, computed, random_batch
from tests.kernels.definition import planes_by_definition
from tests.kernels.test_shuffled_tile_on_host import BLOCKS, N_TO_M, SHAPES
from xcorr_app.gpu.direct.kernels import KERNELS, STAGED
from xcorr_app.gpu.direct.problem import Problem

pytestmark = NEEDS_DEVICE

PROBLEMS = [*N_TO_M, Problem.full_plane((130, 97), (101, 133), lefts=5, rights=6, rights_per_left=6)]


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize(
    "distribution", [{"DISTRIBUTION": d, "MAX_ROWS": m} for d, m in ((0, 1), (1, 5), (2, 1), (2, 7), (2, 65536))]
)
@pytest.mark.parametrize(("variant", "tuning"), SHAPES)
def test_rows_distributed(cupy, variant, tuning, distribution, problem):
    lefts, rights = random_batch(problem, "float32")
    planes = computed(cupy, lefts, rights, problem, variant, tuning={**tuning, **distribution})
    assert_equal(planes, planes_by_definition(lefts, rights, problem))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
@pytest.mark.parametrize(("variant", "tuning"), SHAPES)
def test_integers_are_converted_on_load(cupy, variant, tuning, dtype):
    problem = PROBLEMS[0]
    lefts, rights = random_batch(problem, dtype)
    planes = computed(cupy, lefts, rights, problem, variant, tuning={**tuning, "DISTRIBUTION": 2, "MAX_ROWS": 4})
    assert_equal(planes, planes_by_definition(lefts, rights, problem))


@pytest.mark.parametrize(("variant", "tuning"), BLOCKS)
def test_blocks_of_any_size(cupy, variant, tuning):
    problem = PROBLEMS[0]
    lefts, rights = random_batch(problem, "float32")
    planes = computed(cupy, lefts, rights, problem, variant, tuning=tuning)
    assert_equal(planes, planes_by_definition(lefts, rights, problem))


@pytest.mark.parametrize("distribution", [0, 2])
@pytest.mark.parametrize("variant", [name for name in KERNELS if name not in STAGED])
def test_elements_and_sums_of_float64(cupy, variant, distribution):
    problem = Problem((63, 70), (51, 66), (-20, -33), (41, 70), lefts=3, rights=4, rights_per_left=4)
    rng = np.random.default_rng(7)
    lefts, rights = rng.normal(1e5, 1, (3, 63, 70)), rng.normal(-1e5, 1, (4, 51, 66))
    tuning = {"DISTRIBUTION": distribution} if "DISTRIBUTION" in KERNELS[variant].tunables else {}
    planes = computed(cupy, lefts, rights, problem, variant, sum_type="double", tuning=tuning)
    np.testing.assert_allclose(planes, planes_by_definition(lefts, rights, problem), rtol=1e-12)
