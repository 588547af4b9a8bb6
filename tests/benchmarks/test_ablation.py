"""The ablations of the four documents without a device: what is recorded, kept of an earlier run, and drawn."""

import json

import pytest

from benchmarks.harness import benchmark
from benchmarks.harness.benchmark import Benchmark, better_of, joined
from benchmarks.harness.device_rates import DeviceRates
from benchmarks.harness.fastest import Outcome
from benchmarks.harness.result import Result
from benchmarks.suites import DOCUMENTS
from tests.benchmarks.runner import run_benchmarks
from xcorr_app.gpu.runtime.device import DeviceStatus

RATES = DeviceRates(30e12, 3e12, 5e-7)


def a_result(suite, case, times=1.0):
    ways = [way.name for way in suite.contenders(case)]
    outcomes = [
        Outcome(what, True, what, 3e-5 * (i + 1) * times, best_seconds=2e-5 * (i + 1), memory_bytes=int(1e8))
        for i, what in enumerate(ways)
    ]
    return Result(case, RATES, (*outcomes, Outcome("peer", seconds=6e-5), Outcome("late", failure="wrong answer")))


@pytest.fixture
def no_device(monkeypatch):
    """What is timed is made up; everything else runs."""
    status = DeviceStatus(available=True, name="NVIDIA H100", multiprocessors=132)
    for place in ("benchmarks.harness.benchmark", "benchmarks.commands"):
        monkeypatch.setattr(f"{place}.require_device", lambda: status)
    monkeypatch.setattr("benchmarks.commands.select_device", lambda name: None)
    monkeypatch.setattr(benchmark, "measure_rates", lambda clock, count: RATES)
    monkeypatch.setattr(benchmark, "free_device_memory", lambda: None)
    monkeypatch.setattr(benchmark, "compile_ahead", lambda suite, cases: None)
    monkeypatch.setattr(Benchmark, "of_torch", lambda self, cases: {})
    monkeypatch.setattr(Benchmark, "measure", lambda self, case, of_torch: a_result(self._suite, case))


@pytest.mark.usefixtures("no_device")
def test_the_command_writes_records_and_pictures(tmp_path):
    run = run_benchmarks("ablation", "--document", "reuse", "--document", "im2win", "--quick", "--results", tmp_path)
    assert run.code == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        f"ablation_{name}.{kind}" for name in ("reuse", "im2win") for kind in ("json", "svg")
    }
    record = json.loads((tmp_path / "ablation_reuse.json").read_text(), parse_constant=pytest.fail)
    assert record["benchmark"] == "ablation-reuse"
    assert {case["readings"] for case in record["cases"]} == {DOCUMENTS["reuse"].quick.repeats}
    case = record["cases"][0]
    assert (case["winner"], case["best_own"], case["best_peer"]) == ("direct", "direct", "peer")
    assert case["speed_over_peer"] == pytest.approx(2)
    assert case["name"] in run.stdout
    assert "wrong answer" in run.stdout


@pytest.mark.usefixtures("no_device")
def test_a_record_keeps_what_an_earlier_run_has_besides(tmp_path):
    suite, path = DOCUMENTS["reuse"], tmp_path / "ablation_reuse.json"
    for only in ("one image 1024^2: 3 x 3", "one image 1024^2: 5 x 5"):
        assert run_benchmarks("ablation", "--document", "reuse", "--only", only, "--results", tmp_path).code == 0
    both = json.loads(path.read_text())
    assert [case["name"] for case in both["cases"]] == [case.name for case in suite.cases[:2]]
    assert {timing["case"] for timing in both["timings"]} == {case.name for case in suite.cases[:2]}
    new = both | {"cases": both["cases"][1:], "timings": []}
    assert [case["name"] for case in joined(new, path, suite)["cases"]] == [case.name for case in suite.cases[:2]]
    elsewhere = new | {"device": {"name": "another"}}
    assert joined(elsewhere, path, suite) == elsewhere


@pytest.mark.usefixtures("no_device")
@pytest.mark.parametrize("command", ["correlation", "filter"])
def test_a_suite_prints_and_writes(tmp_path, monkeypatch, command):
    monkeypatch.setattr(Benchmark, "measure", lambda self, case, of_torch: Result(case, RATES, OUTCOMES, "auto"))
    path = tmp_path / "r.json"
    run = run_benchmarks(command, "--quick", "--only", "call one", "--json", path)
    assert run.code == 0, run.stderr
    assert "wins: ours" in run.stdout
    assert "auto takes ours, 0.0 % behind" in run.stdout
    read = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert read["cases"][0]["auto_behind_percent"] == 0
    assert [timing["microseconds"] for timing in read["timings"]][:2] == pytest.approx([30, 60])


OUTCOMES = (Outcome("ours", True, "auto", 3e-5), Outcome("peer", seconds=6e-5), Outcome("failed", failure="no room"))


def test_the_faster_of_two_runs_counts_and_a_failure_never():
    slow, fast, failed = Outcome("a", seconds=2.0), Outcome("a", seconds=1.0), Outcome("a", failure="no room")
    assert better_of([slow], [fast]) == better_of([fast], [slow]) == better_of([failed], [fast]) == [fast]
    assert better_of([failed], [failed]) == [failed]
