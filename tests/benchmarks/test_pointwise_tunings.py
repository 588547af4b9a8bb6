"""The sweep of the tiled product's tiles: what is tried, its table, and a whole run on arrays of the host."""

import importlib.util
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.harness import clock, fastest
from benchmarks.harness.clock import Measured
from benchmarks.harness.device_rates import DeviceRates
from benchmarks.harness.fastest import Outcome
from benchmarks.pointwise.cases import PointwiseCase
from benchmarks.pointwise.layers import LAYERS
from xcorr_app.gpu.pointwise.tiles import tiled_launch
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "pointwise_tunings.py"
H200 = KNOWN_DEVICES["h200"]
SMALL = PointwiseCase(name="batch 1: 80 -> 50, 7^2", images=2, channels=80, filters=50, side=7)


@pytest.fixture(scope="module")
def script():
    specification = importlib.util.spec_from_file_location("pointwise_tunings", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    sys.modules["pointwise_tunings"] = module
    path = list(sys.path)
    specification.loader.exec_module(module)
    sys.path[:] = path
    return module


def test_layers_by_batch_and_name(script):
    assert len(script.layers_of("", [1, 32])) == 2 * len(LAYERS)
    assert [case.name for case in script.layers_of("512 -> 512", [128])] == ["batch 128: 512 -> 512, 14^2"]


@pytest.mark.parametrize("name", ["1152 -> 320", "144 -> 40", "512 -> 512", "96 -> 24"])
@pytest.mark.parametrize("batch", [1, 32])
def test_what_is_tried_can_be_launched(script, name, batch):
    (case,) = script.layers_of(name, [batch])
    problem = script.problem_of(case)
    tunings = script.candidates(problem, H200, 30)
    assert len({tuple(sorted(tuning.items())) for tuning in tunings}) == len(tunings) == 30
    assert len({script.shape_of(tuning).split("d")[0] for tuning in tunings}) >= 8
    for tuning in tunings:
        launch = tiled_launch(problem, H200, tuning=tuning)
        assert launch.segments == tuning["SEGMENTS"]
        assert {name: launch.defines[name] for name in tuning if name != "SEGMENTS"} == {
            name: value for name, value in tuning.items() if name != "SEGMENTS"
        }
    shape, launch = script.automatic_choice(problem, H200)
    assert launch.entry == "pointwise_tiled"
    assert shape.split("k")[0].count("x") == 1


def trial(script, microseconds, failure="", **tuning):
    whole = {"LANES_M": 4, "WARPS_M": 1, "WARPS_N": 2, "WARPS_K": 1, "MICRO_M": 8, "MICRO_N": 8, "TILE_K": 8}
    whole["SPLIT"] = 0
    macros = {**whole, "BUFFERS": 2, "SEGMENTS": 1, **tuning} if tuning else {}
    outcome = Outcome("tuning", seconds=microseconds * 1e-6, failure=failure)
    return script.Trial("batch 1: a layer", macros, outcome, 1 / microseconds)


def test_the_table_ranks_what_was_right_beside_the_automatic_choice(script):
    tried = [trial(script, 9 - k, SEGMENTS=k) for k in range(1, 7)]
    trials = [trial(script, 4.0), *tried, trial(script, float("nan"), "wrong", WARPS_K=2)]
    line = script.line_of(trials, "shallow")
    first, *best = line.split(" | ")
    assert first == "batch 1: a layer:    4.00 us 0.250 shallow"
    assert best == [f"{9 - k}.00 32x128k1(4:8x8)d8b2s{k}" for k in range(6, 1, -1)]
    assert script.means([trials], 1) == "batch 1: floor / time 0.250 automatic, 0.333 best of each, 1 layers"
    assert script.means([trials], 32) == "batch 32: nothing timed"
    assert script.recorded(trials[-1])["microseconds"] is None


@pytest.fixture
def host(monkeypatch, script):
    """Arrays of the host, and a product whose answer is right but for one tuning."""
    started = []

    def product(stack, matrix, axis, *, out, kernel, tuning):
        started.append((kernel, tuning))
        weights = matrix.values[: stack.shape[axis], : matrix.shape[0]]
        out[:] = np.einsum("cf,bchw->bfhw", weights, stack)
        if tuning.get("WARPS_K") == 4:
            out[0, 0] += 1
        return out

    monkeypatch.setattr(script, "pointwise_on_device", product)
    for module in (script, fastest):
        monkeypatch.setattr(module, "free_device_memory", lambda: None)
    monkeypatch.setattr(clock.Clock, "on_device", lambda self, run, cycle: Measured(2e-6, "replay"))
    monkeypatch.setattr(PointwiseCase, "copies", property(lambda self: 3))
    return started


def test_a_sweep_checks_and_stops_in_time(script, host):
    rates = DeviceRates(1e12, 1e12, 1e-6)
    tunings = [{"WARPS_K": 2}, {"WARPS_K": 4}]
    trials = list(script.sweep(SMALL, tunings, rates, time.monotonic() + 60, np))
    assert [each.tuning for each in trials] == [{}, *tunings]
    assert [each.outcome.failure[:12] for each in trials] == ["", "", "wrong answer"]
    assert trials[0].of_floor == pytest.approx(SMALL.floor_seconds(rates) / 2e-6)
    assert {kernel for kernel, _ in host} == {"auto", "tiled"}
    assert len(list(script.sweep(SMALL, tunings, rates, time.monotonic() - 1, np))) == 1


def test_each_kernel_is_compiled_once(script, monkeypatch):
    compiled = []

    class Pool:
        def __init__(self, *_):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def map(self, function, launches, chunksize):
            return [compiled.append(launch) for launch in launches]

    monkeypatch.setattr(script, "ProcessPoolExecutor", Pool)
    (case,) = script.layers_of("512 -> 512", [1])
    tunings = script.candidates(script.problem_of(case), H200, 30)
    launches = [tiled_launch(script.problem_of(case), H200, tuning=tuning) for tuning in tunings]
    script.compile_ahead([*launches, *launches], 2)
    assert len(compiled) == len({tuple(sorted(launch.defines.items())) for launch in launches}) < len(launches) + 1
