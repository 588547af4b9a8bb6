"""Plans of launches, with a pretended CuPy: what is prepared once, what a call starts, on which parts of the arrays."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

from tests.kernels.binding import bind_without_device
from xcorr_app.gpu.direct import plan as correlation_plan
from xcorr_app.gpu.direct.kernels import KERNELS, max_pairs
from xcorr_app.gpu.direct.plan import plan_of
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime import placement


@pytest.fixture
def started(monkeypatch):
    """Starts of kernels as (name, grid, block, arguments, shared bytes), and the names that were compiled."""
    cupy = types.ModuleType("cupy")
    cupy.empty = np.empty
    attributes = {"MultiProcessorCount": 132, "MaxSharedMemoryPerBlockOptin": 232448}
    attributes |= {"MaxRegistersPerMultiprocessor": 65536, "MaxSharedMemoryPerMultiprocessor": 233472}
    cupy.cuda = types.SimpleNamespace(
        Device=lambda number: types.SimpleNamespace(attributes=attributes, compute_capability="90"),
        runtime=types.SimpleNamespace(
            getDevice=lambda: 0, getDeviceProperties=lambda _: {"name": "GPU"}, driverGetVersion=lambda: 13000
        ),
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    starts, compiled = [], []

    def kernel_function(name, defines, shared_bytes):
        compiled.append(name)
        return lambda *given: starts.append((name.rsplit("/", 1)[-1], *given))

    bind_without_device(monkeypatch, kernel_function)
    cached = (correlation_plan._plan, correlation_plan.device_limits)
    for function in (*cached, placement._number_of_current):
        function.cache_clear()
    yield starts, compiled
    for function in (*cached, placement._number_of_current):
        function.cache_clear()


def stacks(problem):
    return (
        np.zeros((problem.lefts, *problem.left_shape), np.float32),
        np.zeros((problem.rights, *problem.right_shape), np.float32),
        np.full((problem.pairs, *problem.plane_shape), np.nan, np.float32),
    )


def test_a_plan_is_made_once(started):
    starts, compiled = started
    problem = Problem.full_plane((16, 16), (16, 16))
    plan = plan_of(problem, "combined")
    assert plan_of(Problem.full_plane((16, 16), (16, 16)), "combined", tuning={}) is plan
    assert plan_of(problem, "combined", left_type="uint8") is not plan
    assert plan_of(problem, "combined", tuning={"SEGMENTS": 2}) is not plan
    assert plan_of(problem, "combined", sum_type="double").dtype == np.float64
    before = len(compiled)
    for _ in range(3):
        plan.run(*stacks(problem))
    assert len(compiled) == before
    assert len(starts) == 3


def test_a_start_is_the_launch(started):
    starts, _ = started
    problem = Problem((40, 30), (20, 50), (-3, -4), (7, 9), lefts=2, rights=6, rights_per_left=3)
    plan = plan_of(problem, "combined")
    lefts, rights, planes = stacks(problem)
    plan.run(lefts, rights, planes)
    launch = KERNELS["combined"].launch(problem, device=correlation_plan.device_limits(0))
    ((name, grid, block, arguments, shared_bytes),) = starts
    assert (name, grid, block, shared_bytes) == ("combined", (launch.blocks,), (launch.threads,), launch.shared_bytes)
    assert all(given is array for given, array in zip(arguments, (lefts, rights, planes), strict=False))
    assert arguments[3:] == (*problem.arguments(), *launch.extra)
    assert {type(number) for number in arguments[3:]} == {np.int32}


def test_segments_are_added_up_from_a_workspace(started):
    starts, _ = started
    problem = Problem.full_plane((256, 256), (256, 256))
    lefts, rights, planes = stacks(problem)
    plan_of(problem, "combined").run(lefts, rights, planes)
    (first, *_, kernel_arguments, _), (second, *_, sum_arguments, _) = starts
    assert (first, second) == ("combined", "sum_segments")
    workspace = kernel_arguments[2]
    assert workspace.shape == (kernel_arguments[-2], *planes.shape)
    assert kernel_arguments[-2] > 1
    assert sum_arguments[0] is workspace
    assert sum_arguments[1] is planes


@pytest.mark.parametrize(("distribution", "zeroed"), [(0, False), (1, True), (2, True)])
@pytest.mark.parametrize("variant", ["multi-right", "multi-left-right", "multi-row", "combined-shuffle"])
def test_planes_are_zeroed_where_rows_are_distributed(started, variant, distribution, zeroed):
    starts, _ = started
    problem = Problem.full_plane((20, 21), (20, 21), lefts=2, rights=3, rights_per_left=3)
    lefts, rights, planes = stacks(problem)
    planes[:] = 7
    plan = plan_of(problem, variant, tuning={"DISTRIBUTION": distribution}, sum_type="double", left_type="float64")
    assert plan.dtype == np.float64
    plan.run(lefts, rights, planes)
    assert len(starts) == 1
    assert (not planes.any()) == zeroed


def test_planes_that_are_added_to_are_zeroed_once(started):
    starts, _ = started
    problem = Problem.full_plane((64, 64), (64, 64), lefts=3, rights=3)
    lefts, rights, planes = stacks(problem)
    plan_of(problem, "row-product").run(lefts, rights, planes)
    assert [start[0] for start in starts] == ["row_product", "row_product"]
    assert [start[3][-1] for start in starts] == [0, 1]
    assert not planes.any()


def test_large_batches_go_in_parts(started, monkeypatch):
    starts, _ = started
    monkeypatch.setattr(correlation_plan, "max_pairs", lambda *kind, **how: min(4, max_pairs(*kind, **how)))
    problem = Problem.full_plane((5, 6), (7, 8), lefts=3, rights=18, rights_per_left=6)
    lefts, rights, planes = stacks(problem)
    lefts[:] = np.arange(3)[:, None, None]
    rights[:] = np.arange(18)[:, None, None]
    planes[:] = np.arange(18)[:, None, None]
    # As engines hand them over: leading axes split.
    plan_of(problem, "overlap-wise").run(lefts[:, None], rights.reshape(3, 6, 7, 8), planes.reshape(3, 6, 11, 13))
    found = [tuple(int(array.flat[0]) for array in start[3][:3]) for start in starts]
    assert found == [(0, 0, 0), (0, 4, 4), (1, 6, 6), (1, 10, 10), (2, 12, 12), (2, 16, 16)]
    assert [int(start[3][13]) for start in starts] == [4, 2, 4, 2, 4, 2]  # pairs of each launch
