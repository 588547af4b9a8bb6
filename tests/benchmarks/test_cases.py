"""The table of cases: its arithmetic against enumeration, and that nothing that was promised is missing."""

import numpy as np
import pytest

from benchmarks.correlation.cases import CASES, TASKS, cases_named
from benchmarks.harness.device_rates import DeviceRates
from tests.benchmarks.small_cases import PEAKS, PLANES


def counted_products(problem):
    """Products of one pair, counted shift by shift and element by element."""
    (left_h, left_w), (right_h, right_w) = problem.left_shape, problem.right_shape
    total = 0
    for iy, ix in np.ndindex(*problem.plane_shape):
        dy, dx = problem.first_shift[0] + iy, problem.first_shift[1] + ix
        total += sum(0 <= y + dy < left_h and 0 <= x + dx < left_w for y, x in np.ndindex(right_h, right_w))
    return total


@pytest.mark.parametrize("case", PLANES, ids=lambda case: case.name)
def test_products_are_those_of_enumeration(case):
    assert case.products == case.problem.pairs * counted_products(case.problem)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_full_plane_counts_every_product_and_a_window_a_whole_matrix_a_shift(case):
    problem = case.problem
    shifts = np.prod(problem.plane_shape)
    smaller = min(np.prod(problem.left_shape), np.prod(problem.right_shape))
    full = tuple(a + b - 1 for a, b in zip(problem.left_shape, problem.right_shape, strict=True))
    if problem.plane_shape == full:
        assert case.fma == case.products
    else:
        assert case.fma == problem.pairs * shifts * smaller
        assert 0.5 * case.fma < case.products < case.fma


def test_bytes_are_those_of_the_arrays():
    for case in (*PLANES, *PEAKS):
        problem = case.problem
        arrays = [
            np.empty((problem.lefts, *problem.left_shape), case.left_type),
            np.empty((problem.rights, *problem.right_shape), case.right_type),
        ]
        results = 4 * problem.pairs * np.prod(problem.plane_shape) if case.task == "plane" else 16 * problem.pairs
        assert case.moved_bytes == sum(array.nbytes for array in arrays) + results


def test_the_floor_is_the_longer_of_arithmetic_and_traffic():
    case = next(cases_named("one-to-one 256^2"))
    by_arithmetic = DeviceRates(fma=1e9, copy=1e15, empty=1e-6)
    by_traffic = DeviceRates(fma=1e18, copy=1e6, empty=1e-6)
    assert case.floor_seconds(by_arithmetic) == pytest.approx(256**4 / 1e9)
    assert case.floor_seconds(by_traffic) == pytest.approx(4 * (2 * 256**2 + 511**2) / 1e6)


def test_every_case_of_the_goals_is_there_once():
    assert len({case.name for case in CASES}) == len(CASES)
    assert {case.task for case in CASES} == set(TASKS)
    wanted = {
        (256, 256, "plane", 256), (256, 256, "plane", 16), (256, 256, "plane", 1), (16, 16, "plane", 1),
        (32, 32, "plane", 1), (64, 64, "plane", 1), (512, 512, "zncc-peak", 256), (32, 32, "peak", 16384),
        (64, 64, "peak", 16384), (64, 64, "plane", 4096), (512, 512, "peak", 1000), (16, 16, "call", 1),
        (32, 32, "call", 1), (64, 64, "call", 1), (512, 512, "zncc-peak", 512), (1024, 1024, "zncc-peak", 128),
        (2048, 2048, "zncc-peak", 32), (256, 256, "zncc-peak", 2048), (1024, 1024, "zncc-peak", 1),
    }  # fmt: skip
    assert wanted <= {(*case.problem.left_shape, case.task, case.problem.pairs) for case in CASES}
    assert any(case.problem.left_shape != case.problem.right_shape for case in CASES)


def test_the_group_of_tensor_cores():
    cases = list(cases_named("tensor"))
    assert len(cases) == 10
    (planes,) = (case for case in cases if case.task == "plane")
    assert (planes.problem.pairs, planes.problem.left_shape, planes.problem.lefts) == (1024, (64, 64), 32)
    cases.remove(planes)
    assert all(case.goal and case.task in ("peak", "zncc-peak") for case in cases)
    frames = [case for case in cases if case.problem.lefts == 1]
    assert {case.problem.plane_shape for case in frames} == {(32, 32), (64, 64)}
    assert all(case.problem.first_shift[0] == -case.problem.plane_shape[0] // 2 for case in frames)
    assert [case.right_type for case in frames if "uint16" in case.name] == ["uint16"]
    assert [case.problem.left_shape for case in cases if case not in frames] == [(32, 32), (64, 64)]


def test_only_chooses_by_name():
    assert [case.name for case in cases_named("one-to-one 64")] == ["one-to-one 64^2 full"]
    assert list(cases_named("")) == list(CASES)
    assert not list(cases_named("no such case"))
