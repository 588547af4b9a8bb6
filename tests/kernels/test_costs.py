"""The choice of ``auto``: never far from the best of what was measured, and a pure function of the problem."""

from __future__ import annotations

import json
import math
import types
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from xcorr_app.correlation import engines
from xcorr_app.correlation.engines import choose_engine
from xcorr_app.gpu.direct.costs import CostTable, fft_cost, shipped_table, unflattened
from xcorr_app.gpu.direct.kernels import KERNELS
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES

H200 = KNOWN_DEVICES["h200"]
MEASURED = Path(__file__).parents[2] / "benchmarks" / "results" / "engine_choice.json"
FULL = Problem.full_plane


def window(size, reach, **batch):
    return Problem((size, size), (size, size), (-reach, -reach), (2 * reach + 1, 2 * reach + 1), **batch)


def each(pairs):
    return {"lefts": pairs, "rights": pairs}


def many(pairs):
    return {"rights": pairs, "rights_per_left": pairs}


def costs(problem, device=H200):
    """Expected microseconds on the device, of the FFT and of the kernels that may win."""
    found = {entry.name: entry.cost(problem, device) for entry in KERNELS.values() if entry.cost}
    return {"fft": fft_cost(problem, device)} | {name: time for name, time in found.items() if time != math.inf}


def test_on_every_measured_problem_the_least_cost_is_within_a_tenth_of_the_best():
    table = shipped_table()
    assert len(table.rows) > 500
    behind = []
    for i, row in enumerate(table.rows):
        expected = costs(unflattened(row))
        times = {name: of[i] for name, of in table.microseconds.items() if of[i] is not None and name in expected}
        choice = min(times, key=expected.__getitem__)
        behind.append(times[choice] / min(times.values()))
    assert sum(ratio <= 1.1 for ratio in behind) >= 0.99 * len(behind)
    assert max(behind) <= 1.3


def test_off_the_grid_the_least_cost_is_mostly_within_a_tenth_of_the_best():
    rows = [row for row in json.loads(MEASURED.read_text())["rows"] if not row["on_grid"]]
    assert len(rows) == 200
    behind = []
    for row in rows:
        expected = costs(unflattened(row["problem"]))
        choice = min(row["us"].keys() & expected.keys(), key=expected.__getitem__)
        behind.append(row["us"][choice] / min(row["us"].values()))
    assert sum(ratio <= 1.1 for ratio in behind) >= 0.95 * len(behind)
    assert max(behind) <= 1.8


def test_what_is_stored_is_what_would_be_derived():
    folder = resources.files("xcorr_app.gpu.direct")
    derived = CostTable(json.loads(folder.joinpath("costs.json").read_text()))
    for name, stored in shipped_table().misses.items():
        np.testing.assert_allclose(stored.coordinates, derived.misses[name].coordinates, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(stored.missed, derived.misses[name].missed, rtol=1e-5, atol=1e-5)


def test_more_pairs_never_cost_less():
    for size in (24, 70, 200):
        for name in ("fft", "combined", "row-product"):
            times = [
                costs(FULL((size, size), (size, size), **each(pairs)))[name] for pairs in (1, 10, 100, 1000, 10000)
            ]
            assert times == sorted(times), (size, name)


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
    for name, time_measured in measured.items():
        assert table.cost(name, problem) == pytest.approx(time_measured, rel=0.1), name


@pytest.fixture
def device(monkeypatch):
    """A module that stands for CuPy, and a device for it."""
    monkeypatch.setattr(engines, "current_device", lambda: 0)
    monkeypatch.setattr(engines, "device_limits", lambda number: H200)
    return types.SimpleNamespace(__name__="cupy")


def test_auto_takes_the_cheapest_engine(device):
    assert choose_engine("auto", device, window(512, 8, **many(256))).name == "direct"
    assert choose_engine("auto", device, FULL((512, 512), (512, 512))).name == "fft"


def test_auto_is_the_fft_where_kernels_have_no_say(device):
    problem = window(512, 8, **many(256))
    assert choose_engine("auto", device, problem, dtypes=("float64", "float64")).name == "fft"
    assert choose_engine("auto", device).name == "fft"
    assert choose_engine("auto", np, problem).name == "fft"
