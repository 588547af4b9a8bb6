"""``python -m benchmarks moving``: on the CPU it runs anywhere; without a GPU it says so."""

from __future__ import annotations

import json

import pytest

from benchmarks import moving
from tests.benchmarks.runner import run_benchmarks


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(moving, "CASES", (moving.Case(4, 24, "uint16"), moving.Case(3, 17, "float32")))


@pytest.mark.usefixtures("small")
def test_on_the_cpu_every_order_is_timed(tmp_path):
    run = run_benchmarks("moving", "--device", "cpu", "--json", tmp_path / "r.json")
    assert run.code == 0
    found = json.loads((tmp_path / "r.json").read_text())
    assert [(row["case"], row["order"]) for row in found["rows"]] == [
        (case.name, order) for case in moving.CASES for order in moving.ORDERS
    ]
    assert all(row["one_core"] > 0 and row["all_cores"] > 0 for row in found["rows"])
    assert all((row["scipy"] is None) == (row["order"] not in (1, 3)) for row in found["rows"])


@pytest.mark.gpu
@pytest.mark.parametrize("order", moving.ORDERS)
def test_on_a_device_answers_are_compared_and_timed(order):
    row = moving.measure_on_device(moving.Case(6, 40, "uint16"), order, moving.Clock(repeats=1, calls=3))
    assert row["off"] <= 1
    assert row["call"] > 0
    assert (row["launch"] is None) == (order == "fourier")
