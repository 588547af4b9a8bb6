"""The choice of ``auto``: never far from the best of what was measured, and a pure function of the problem."""

from __future__ import annotations

import math
import types

import numpy as np
import pytest

from xcorr_app.correlation import engines
from xcorr_app.correlation.engines import choose_engine
from xcorr_app.gpu.direct.costs import CostTable, fft_cost, shipped_table
from xcorr_app.gpu.direct.kernels import KERNELS
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES

H200 = KNOWN_DEVICES["h200"]
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
