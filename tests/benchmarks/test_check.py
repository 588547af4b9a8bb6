"""The check before every timing accepts the definition and refuses what is wrong."""

import numpy as np
import pytest

from benchmarks.correlation import check
from benchmarks.correlation.check import TOLERANCE, Expected
from benchmarks.correlation.data import random_data
from tests.benchmarks.small_cases import PEAKS, PLANES, REGISTRATIONS
from tests.correlation import plain
from tests.kernels.definition import plane_by_definition
from xcorr_app.correlation.problem import window_of


def right_plane(case, data, pair):
    problem = case.problem
    left, right = data.lefts[pair // problem.rights_per_left], data.rights[pair % problem.rights]
    if case.task == "zncc-peak":
        return plain.zncc(left, right, window_of(problem))
    return plane_by_definition(left, right, problem.first_shift, problem.plane_shape)


@pytest.mark.parametrize("case", PLANES, ids=lambda case: case.name)
def test_planes(case):
    data = random_data(case, np)
    expected = Expected(case, data)
    assert set(expected.parts) == {0, case.problem.pairs - 1}
    for pair in expected.parts:
        plane = right_plane(case, data, pair)
        assert expected.error(pair, plane) < 1e-12
        assert expected.error(pair, plane[::-1]) > TOLERANCE
        assert expected.error(pair, plane[:-1]) == float("inf")
        assert expected.error(pair, np.full_like(plane, np.nan)) == float("inf")


@pytest.mark.parametrize("case", [*PEAKS, *REGISTRATIONS], ids=lambda case: case.name)
def test_peaks(case):
    data = random_data(case, np)
    expected = Expected(case, data)
    for pair in expected.parts:
        plane = right_plane(case, data, pair)
        assert expected.error(pair, plane.argmax()) == 0
        assert expected.error(pair, plane.argmax() - 1) > TOLERANCE
        shift = np.array(np.unravel_index(plane.argmax(), plane.shape)) + case.problem.first_shift
        assert shift.any() or pair % 5, "the data hold no displacement to find"


@pytest.mark.parametrize("case", REGISTRATIONS, ids=lambda case: case.name)
def test_scores_are_those_of_the_definition(case):
    data = random_data(case, np)
    for right in data.rights[:2].astype(np.float64):
        left = data.lefts[0].astype(np.float64)
        expected = plain.zncc(left, right, window_of(case.problem))
        np.testing.assert_allclose(check._scores(case.problem, left, right), expected, atol=1e-12)
