"""The worker-to-task mapping of distribution.cuh against enumeration of the tasks."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.kernels.host_device import SHIM, build

NONE, RECTANGLE, TRIANGLE = 0, 1, 2


@pytest.fixture(scope="module")
def probe(host_builds):
    return build(host_builds, SHIM / "distribution_probe.cpp", {})


def heights(left, right, first, count, step=1):
    """Left rows that meet a right row at any dy of each group of `step`, counted one by one."""
    groups = [range(dy, dy + step) for dy in range(first, first + count, step)]
    return [sum(any(0 <= y - dy < right for dy in group) for y in range(left)) for group in groups]


def enumerated(left, right, first, count, rows, step=1):
    """Every (iy, first row, last row) that must be done; rows rounded up to whole steps."""
    tasks, rows = [], -(-rows // step) * step
    for group, height in enumerate(heights(left, right, first, count, step)):
        tasks += [(group * step, start, min(start + rows, height)) for start in range(0, height, rows)]
    return tasks


def tasks_of(probe, arguments, workers):
    tasks = np.full((workers, 3), -7, dtype=np.int32)
    probe.probe_tasks(*arguments, workers, tasks.ctypes.data_as(ctypes.c_void_p))
    return [tuple(task) for task in tasks.tolist()]


WINDOWS = [
    *((size, size, 1 - size, 2 * size - 1) for size in (1, 2, 3, 7, 16, 33)),  # full planes
    *((left, right, 1 - right, left + right - 1) for left, right in ((1, 9), (9, 1), (5, 12), (12, 5), (20, 31))),
    (12, 5, -2, 4),  # parts of the rise, the flat and the fall
    (5, 12, -9, 6),
    (9, 9, 2, 5),
    (9, 9, -8, 4),
    (4, 6, -20, 40),  # beyond the overlap on both sides
    (4, 6, 10, 3),  # no overlap at all
    (4, 6, -30, 5),
    (64, 64, -16, 33),
]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8, 64])
@pytest.mark.parametrize("step", [1, 2, 3, 4, 8])
def test_triangle_starts_one_worker_for_each_task(probe, window, rows, step):
    expected = enumerated(*window, rows, step)
    arguments = (*window, TRIANGLE, rows, step)
    assert probe.probe_workers(*arguments) == len(expected)
    surplus = [(-1, 0, 0)] * 3
    got = tasks_of(probe, arguments, len(expected) + 3)
    assert got[len(expected) :] == surplus
    assert sorted(got[: len(expected)]) == expected


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8, 64])
@pytest.mark.parametrize("step", [1, 2, 3, 4, 8])
def test_rectangle_covers_each_row_once_and_sends_the_rest_home(probe, window, rows, step):
    arguments = (*window, RECTANGLE, rows, step)
    workers = probe.probe_workers(*arguments)
    most = min(window[0], window[1] + step - 1)
    assert workers == -(-window[3] // step) * -(-most // (-(-rows // step) * step))
    got = [task for task in tasks_of(probe, arguments, workers + 2) if task[0] >= 0]
    assert sorted(got) == enumerated(*window, rows, step)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("step", [1, 2, 3, 4, 8])
def test_none_gives_each_shift_all_its_rows(probe, window, step):
    arguments = (*window, NONE, 3, step)
    workers = probe.probe_workers(*arguments)
    assert workers == -(-window[3] // step)
    got = tasks_of(probe, arguments, workers + 1)
    assert got == [*((step * i, 0, height) for i, height in enumerate(heights(*window, step))), (-1, 0, 0)]


@pytest.mark.parametrize("rows", [1, 3, 32, 1000])
def test_root_is_exact_at_the_borders_of_large_runs(probe, rows):
    """Float cannot hold these worker numbers: the integer correction must."""
    before = ctypes.c_int()
    for height in (*range(1, 40), *range(20_000, 20_040), 30_000 // rows * rows, 30_000 // rows * rows + 1):
        start, end = probe.probe_tasks_up_to(height - 1, rows), probe.probe_tasks_up_to(height, rows)
        # The definition: one more ceil(height / rows) than all heights below.
        assert end - start == -(-height // rows)
        for worker in (start, end - 1):
            assert probe.probe_height(worker, rows, ctypes.byref(before)) == height
            assert before.value == start
