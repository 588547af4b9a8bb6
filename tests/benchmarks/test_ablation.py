"""The ablations of the four documents without a device: what is planned, recorded, printed and drawn."""

import json
from dataclasses import replace

from benchmarks.ablation import command
from benchmarks.harness.device_rates import DeviceRates
from benchmarks.harness.fastest import Outcome
from benchmarks.work.records import WorkResult, WorkTiming
from tests.benchmarks.runner import run_benchmarks
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES

H100 = KNOWN_DEVICES["h100"]
RATES = DeviceRates(30e12, 3e12, 5e-7)


def a_result(suite, case, failing=""):
    outcomes = [
        Outcome(way.name, seconds=3e-5 * (i + 1), best_seconds=2e-5 * (i + 1), memory_bytes=int(1e8))
        for i, way in enumerate(suite.contenders(case))
    ]
    outcomes = [
        replace(each, failure="wrong answer, error 1e+0") if each.what == failing else each for each in outcomes
    ]
    timings = tuple(WorkTiming.of(outcome, case, RATES) for outcome in outcomes)
    return WorkResult(case.name, case.group, (), case.fma, case.moved_bytes, 1.0, timings)


def a_record(suite, cases, failing="", *, readings=100, driver="580"):
    results = [a_result(suite, case, failing) for case in cases]
    devices = [{"name": "NVIDIA H100", "driver": driver}]
    return {
        "environment": {"devices": devices, "versions": {"cupy": "14.2.0"}, "date": "2026-11-22"},
        "device": {"name": "NVIDIA H100"},
        "benchmark": suite.name,
        "cases": [result.as_dict() | {"readings": readings, "date": "2026-11-22"} for result in results],
        "timings": [timing.__dict__ for result in results for timing in result.timings],
    }


def test_the_command_writes_record_and_picture_and_prints_tables_last(monkeypatch, tmp_path):
    asked = []

    def measured(console, suite, only, *, quick):
        asked.append((suite.name, only, quick))
        yield a_record(suite, suite.cases_named(only, quick=quick)[:1])

    monkeypatch.setattr(command, "measured", measured)
    monkeypatch.setattr("benchmarks.commands.require_device", lambda: None)
    monkeypatch.setattr("benchmarks.commands.select_device", lambda name: None)
    run = run_benchmarks("ablation", "--document", "reuse", "--document", "im2win", "--quick", "--results", tmp_path)
    assert run.code == 0
    assert asked == [("ablation-reuse", "", True), ("ablation-im2win", "", True)]
    assert run.stdout.splitlines()[0] == "== reuse (ablation_reuse.json)"
    assert {path.name for path in tmp_path.iterdir()} == {
        f"ablation_{name}.{kind}" for name in ("reuse", "im2win") for kind in ("json", "svg")
    }
    assert json.loads((tmp_path / "ablation_reuse.json").read_text())["benchmark"] == "ablation-reuse"
