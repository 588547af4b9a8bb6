"""The sweep of ``benchmarks/moving_tunings.py`` on the host: what is tried, and that a wrong answer ends it."""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path

import pytest

from benchmarks.harness.clock import Measured
from benchmarks.moving import Case
from tests.kernels.resample_host import forget, numpy_as_device

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "moving_tunings.py"


@pytest.fixture
def script(monkeypatch, host_builds):
    specification = importlib.util.spec_from_file_location("moving_tunings", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    path = list(sys.path)
    specification.loader.exec_module(module)
    sys.path[:] = path
    numpy_as_device(monkeypatch, host_builds)
    monkeypatch.setattr(module, "COLUMNS", (4, 16))
    monkeypatch.setattr(module, "ROWS", (8,))
    monkeypatch.setattr(module, "THREADS", (64,))
    monkeypatch.setattr(module, "BLOCKS", (4,))
    yield module
    forget()


def test_the_best_shape_is_tried_with_other_blocks(script, monkeypatch):
    seconds = iter([5.0, 3.0, 4.0, 2.0])

    class Stub:
        def on_device(self, run):
            run()
            return Measured(next(seconds), "call")

    monkeypatch.setattr(script, "CLOCK", Stub())
    rows = script.sweep(Case(2, 24, "uint16"), "linear", time.monotonic() + 1000)
    assert [row["tuning"] for row in rows] == [
        {},
        {"COLUMNS": 4, "ROWS": 8},
        {"COLUMNS": 16, "ROWS": 8},
        {"COLUMNS": 4, "ROWS": 8, "THREADS": 64, "BLOCKS": 4},
    ]
    assert rows[-1]["us"] == 1e6


def test_another_result_ends_the_sweep(script, monkeypatch):
    real = script.translate_on_device

    def wrong(*arguments, tuning=None, **options):
        result, clipped = real(*arguments, tuning=tuning, **options)
        if tuning:
            result[0, 0, 0] += 1
        return result, clipped

    monkeypatch.setattr(script, "translate_on_device", wrong)
    monkeypatch.setattr(script, "CLOCK", type("Stub", (), {"on_device": lambda self, run: Measured(1.0, "call")})())
    with pytest.raises(AssertionError, match="gives other results"):
        script.sweep(Case(2, 24, "uint16"), "linear", time.monotonic() + 1000)
