"""The choice of ``auto``: never far from the best of what was measured, and a pure function of the problem."""

from __future__ import annotations

import math
import types

import numpy as np
import pytest

from xcorr_app.correlation import engines
from xcorr_app.correlation.engines import Task, choose_engine
from xcorr_app.correlation.engines.task import window_of
from xcorr_app.gpu.direct.costs import CostTable, candidates, cheapest, costs, fastest_variant, shipped_table
from xcorr_app.gpu.direct.fft_size import fast_length, smallest_size
from xcorr_app.gpu.direct.kernel_work import combined_work, row_product_work
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.direct.work import fft_work
from xcorr_app.gpu.runtime.limits import DeviceLimits

H200 = DeviceLimits(132, 232448)
FULL = Problem.full_plane


def window(size, reach, **batch):
    return Problem((size, size), (size, size), (-reach, -reach), (2 * reach + 1, 2 * reach + 1), **batch)


def each(pairs):
    return {"lefts": pairs, "rights": pairs}


def many(pairs):
    return {"rights": pairs, "rights_per_left": pairs}


def test_on_every_measured_problem_the_choice_is_within_a_tenth_of_the_best():
    table = shipped_table()
    assert len(table.problems) > 500
    behind = []
    for i, problem in enumerate(table.problems):
        expected = table.costs(problem)
        times = {name: row[i] for name, row in table.microseconds.items() if row[i] is not None and name in expected}
        choice = min(times, key=expected.__getitem__)
        behind.append((times[choice] / min(times.values()), choice, problem))
    assert max(behind, key=lambda item: item[0])[0] <= 1.1


def test_costs_of_measured_problems_are_the_measured_times():
    table = shipped_table()
    for name, row in table.microseconds.items():
        errors = [
            abs(math.log(table.costs(problem)[name] / time))
            for problem, time in zip(table.problems[::7], row[::7], strict=True)
            if time is not None and name in candidates(problem, table.device)
        ]
        assert np.median(errors) < 0.03, name
        assert max(errors) < 0.4, name


@pytest.mark.parametrize(
    ("problem", "choice"),
    [
        (FULL((16, 16), (16, 16)), "row-per-warp"),
        (FULL((64, 64), (64, 64)), "combined"),
        (FULL((512, 512), (512, 512)), "fft"),
        (FULL((256, 256), (256, 256), **each(256)), "fft"),
        (FULL((32, 32), (32, 32), **each(16384)), "row-product"),
        (FULL((96, 96), (96, 96), **each(1024)), "fft"),
        (window(512, 8, **many(256)), "combined"),
        (window(512, 64, **many(256)), "fft"),
    ],
)
def test_clear_cases(problem, choice):
    assert cheapest(problem) == choice


def test_the_fastest_variant_is_a_kernel_even_where_the_fft_wins():
    problem = FULL((256, 256), (256, 256), **each(256))
    assert fastest_variant(problem) == "row-product"
    expected = costs(problem)
    assert expected["fft"] < expected["row-product"] < expected["combined"]


def test_row_product_is_no_candidate_for_windows():
    assert "row-product" in candidates(FULL((64, 64), (64, 64)), H200)
    assert "row-product" not in candidates(window(64, 16), H200)


def test_more_pairs_never_cost_less():
    for size in (24, 70, 200):
        for name in ("fft", "combined", "row-product"):
            times = [
                costs(FULL((size, size), (size, size), **each(pairs)))[name] for pairs in (1, 10, 100, 1000, 10000)
            ]
            assert times == sorted(times), (size, name)


def test_fewer_multiprocessors_cost_more():
    problem = window(512, 8, **many(256))
    assert costs(problem, DeviceLimits(66, 232448))["combined"] > 1.3 * costs(problem, H200)["combined"]


def test_a_table_gives_back_what_it_was_given():
    """Constants that are far off, measurements that do not follow the model: close to them, measurements win."""
    measured = {"fft": 7.0, "combined": 900.0, "row-product": 500.0}
    problem = FULL((40, 40), (40, 40), **each(100))
    flat = [40, 40, 40, 40, -39, -39, 79, 79, 100, 100, 1]
    table = CostTable(
        {
            "device": {"multiprocessors": 132, "shared_bytes": 232448},
            "constants": {name: shipped_table().constants[name] for name in measured},
            "problems": [flat],
            "microseconds": {name: [time] for name, time in measured.items()},
        }
    )
    found = table.costs(problem)
    for name, time in measured.items():
        assert found[name] == pytest.approx(time, rel=0.05), name


def test_work_counts_products_by_the_definition():
    problem = FULL((32, 64), (32, 64), **each(8))
    products = 8 * (32 * 64) ** 2
    padded = row_product_work(problem, H200).all_products * 32
    assert products <= padded <= 1.1 * products
    tiles = combined_work(problem, H200).all_products * 32
    assert products <= tiles <= 2.5 * products


def test_transforms_are_as_large_as_the_engine_makes_them():
    work = fft_work(Problem((50, 60), (40, 33), (-7, 5), (20, 9)))
    assert work.rows == fast_length(smallest_size(50, 40, -7, 12))
    assert work.columns == fast_length(smallest_size(60, 33, 5, 13))
    assert [fast_length(n) for n in (1, 7, 11, 13, 127, 511, 1023)] == [1, 7, 12, 14, 128, 512, 1024]


@pytest.fixture
def device(monkeypatch):
    """A module that stands for CuPy, and a device for it."""
    monkeypatch.setattr(engines, "current_device", lambda: 0)
    monkeypatch.setattr(engines, "device_limits", lambda number: H200)
    return types.SimpleNamespace(__name__="cupy")


def task(problem, dtype=np.float32):
    return Task(
        problem.left_shape,
        problem.right_shape,
        window_of(problem),
        np.dtype(dtype),
        problem.lefts,
        problem.rights,
        problem.rights_per_left,
    )


def test_a_task_is_its_problem():
    problem = Problem((50, 60), (40, 33), (-7, 5), (20, 9), lefts=2, rights=6, rights_per_left=3)
    assert task(problem).problem == problem


def test_auto_takes_the_cheapest_engine(device):
    assert choose_engine("auto", device, task(window(512, 8, **many(256)))).name == "warp-shuffle"
    assert choose_engine("auto", device, task(FULL((512, 512), (512, 512)))).name == "fft"


def test_auto_is_the_fft_where_kernels_have_no_say(device):
    problem = window(512, 8, **many(256))
    assert choose_engine("auto", device, task(problem, np.float64)).name == "fft"
    assert choose_engine("auto", device).name == "fft"
    assert choose_engine("auto", np, task(problem)).name == "fft"
