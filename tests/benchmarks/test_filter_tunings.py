"""The sweep of tunings: its grids hold macros that the kernels have, its order, its report, and a whole run."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks._filter_grids import GRIDS
from benchmarks.filters.data import Expected
from benchmarks.harness import clock, fastest
from benchmarks.harness.clock import Measured
from benchmarks.harness.contender import Attempt
from benchmarks.harness.device_rates import DeviceRates
from benchmarks.harness.fastest import Outcome
from benchmarks.harness.suites import SUITES
from tests.benchmarks.small_work import FILTERS
from xcorr_app.gpu.im2win import kernels as im2win
from xcorr_app.gpu.pointwise import kernels as pointwise
from xcorr_app.gpu.stencil import kernels as stencil

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "filter_tunings.py"


@pytest.fixture(scope="module")
def script():
    specification = importlib.util.spec_from_file_location("filter_tunings", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    sys.modules["filter_tunings"] = module
    path = list(sys.path)
    specification.loader.exec_module(module)
    sys.path[:] = path
    return module


TABLES = {**stencil.KERNELS, **im2win.KERNELS, **pointwise.KERNELS}


@pytest.mark.parametrize("kernel", GRIDS)
def test_grids_hold_tunables_of_the_kernels_and_names_of_cases(script, kernel):
    grid = script.GRIDS[kernel]
    assert set(grid.values) <= TABLES[kernel].tunables
    assert {case.name for case in grid.chosen("")} == set(grid.cases)
    assert grid.chosen("no such case") == []


def test_no_kernel_is_left_out():
    assert set(GRIDS) >= {"reuse", "reuse_wide", "separable", "sliding", "im2win", "mix", "blocking"}


def test_the_summary_names_the_best_and_the_tables_own(script):
    line = script.summary([trial(script, 9e-6), trial(script, 3e-6, WARPS=2)])
    assert "table   9.000" in line
    assert "3.000 x floor  WARPS=2" in line
    assert "none timed" in script.summary([trial(script, float("nan"), "no room")])
    assert "refused" in script.summary([trial(script, float("nan"), "no room"), trial(script, 3e-6, WARPS=2)])


def test_what_differs_least_comes_first(script):
    tried = list(script.Grid("filter", (), None, {"A": (1, 2), "B": (3, 4, 5)}).tried())
    assert tried[0] == {}
    assert [len(tuning) for tuning in tried] == [0, *[1] * 5, *[2] * 6]
    assert len({tuple(sorted(tuning.items())) for tuning in tried}) == 12


def trial(script, seconds, failure="", **tuning):
    return script.Trial("a case", tuning, Outcome("tuning", seconds=seconds, failure=failure), seconds / 1e-6)


def test_the_report_ranks_and_always_names_the_tables_own(script):
    own = trial(script, 9e-6)
    trials = [
        own,
        *(trial(script, k * 1e-6, WARPS=k) for k in range(1, 8)),
        trial(script, float("nan"), "no room", WARPS=9),
    ]
    lines = list(script.report(trials))
    assert lines[0] == "a case: 8 timed, 1 refused"
    assert [line.split()[-1] for line in lines[1:-1]] == [f"WARPS={k}" for k in range(1, 7)]
    assert "9.000 x floor  (the table's own)" in lines[-1]
    refused = list(script.report([trial(script, float("nan"), "no room")]))
    assert refused == ["a case: 0 timed, 1 refused", "  the table's own: no room"]


@pytest.fixture
def numpy_device(monkeypatch, script):
    class Device:
        def __init__(self, number=0):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def synchronize(self):
            pass

    monkeypatch.setattr(np, "cuda", type("cuda", (), {"Device": Device}), raising=False)
    for module in (script, fastest):
        monkeypatch.setattr(module, "free_device_memory", lambda: None)
    monkeypatch.setattr(script, "current_device", lambda: 0)


@pytest.mark.usefixtures("numpy_device")
def test_a_sweep_times_what_is_right_and_stops_in_time(script, monkeypatch):
    case = FILTERS[0]
    monkeypatch.setattr(clock.Clock, "on_device", lambda self, run, cycle: Measured(run()[1], "replay"))
    suite = SUITES["filter"]
    right = {}

    def attempts(tuning):
        if tuning.get("WARPS") == 8:
            raise ValueError("no such block")

        def made(case, data):
            expected = right.setdefault("expected", suite.expected(case, data))
            wrong = 2.0 if tuning.get("WARPS") == 4 else 1.0
            read = lambda result, part: expected._corners[part] * result[0]  # noqa: E731
            yield Attempt(lambda: (wrong, 1e-6 * tuning.get("ROWS", 3)), read)

        return made

    grid = script.Grid(
        "filter", (case.name,), lambda tuning: attempts_or_failure(attempts, tuning), {"WARPS": (4, 8), "ROWS": (1, 2)}
    )
    rates = DeviceRates(1e12, 1e12, 1e-6)
    trials = list(script.sweep(grid, case, rates, 60, np))
    assert len(trials) == 9
    assert script.ranked(trials)[0].tuning == {"ROWS": 1}
    assert trials[0].multiple_of_floor == pytest.approx(3e-6 / case.floor_seconds(rates))
    failures = [each.outcome.failure for each in trials if each.outcome.failure]
    assert len(failures) == 6
    assert {failure.split()[0] for failure in failures} == {"wrong", "ValueError:"}
    assert [each.tuning for each in script.sweep(grid, case, rates, -1, np)] == [{}]
    assert isinstance(right["expected"], Expected)


def attempts_or_failure(attempts, tuning):
    def made(case, data):
        yield from attempts(tuning)(case, data)

    return made
