"""Suites without a device: what is checked, recorded, and kept of an earlier run."""

import io
import json

import numpy as np
import pytest
from rich.console import Console

from benchmarks.correlation import check
from benchmarks.correlation.check import TOLERANCE, Expected
from benchmarks.correlation.data import random_data
from benchmarks.harness import benchmark
from benchmarks.harness.benchmark import Benchmark, joined
from benchmarks.harness.device_rates import DeviceRates
from benchmarks.harness.fastest import Outcome
from benchmarks.harness.result import Result
from benchmarks.pipeline.cases import Size
from benchmarks.pipeline.command import run_pipeline
from benchmarks.suites import DOCUMENTS
from tests.benchmarks.runner import run_benchmarks
from tests.benchmarks.small_cases import PEAKS, PLANES, REGISTRATIONS
from tests.correlation import plain
from tests.kernels.correlation_definition import plane_by_definition
from xcorr_app.correlation.problem import window_of
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
    monkeypatch.setattr(benchmark, "has_torch", lambda: False)
    monkeypatch.setattr(Benchmark, "measure", lambda self, case: a_result(self._suite, case))


@pytest.mark.usefixtures("no_device")
def test_the_command_writes_records(tmp_path):
    run = run_benchmarks("ablation", "--document", "reuse", "--document", "im2win", "--quick", "--results", tmp_path)
    assert run.code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"ablation_reuse.json", "ablation_im2win.json"}
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
@pytest.mark.parametrize(
    ("command", "only"), [("correlation", "one-to-one 16^2"), ("filter", "one image 4096^2 float32 3x3")]
)
def test_a_suite_prints_and_writes(tmp_path, monkeypatch, command, only):
    monkeypatch.setattr(Benchmark, "measure", lambda self, case: Result(case, RATES, OUTCOMES, "auto"))
    path = tmp_path / "r.json"
    run = run_benchmarks(command, "--quick", "--only", only, "--json", path)
    assert run.code == 0, run.stderr
    assert "wins: ours" in run.stdout
    assert "auto takes ours, 0.0 % behind" in run.stdout
    read = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert read["cases"][0]["auto_behind_percent"] == 0
    assert [timing["microseconds"] for timing in read["timings"]][:2] == pytest.approx([30, 60])


OUTCOMES = (Outcome("ours", True, "auto", 3e-5), Outcome("peer", seconds=6e-5), Outcome("failed", failure="no room"))


def right_plane(case, data, pair):
    problem = case.problem
    left, right = data.lefts[pair // problem.rights_per_left], data.rights[pair % problem.rights]
    if case.task == "zncc-peak":
        return plain.zncc(left, right, window_of(problem))
    return plane_by_definition(left, right, problem.first_shift, problem.plane_shape)


@pytest.mark.parametrize("case", PLANES, ids=lambda case: case.name)
def test_planes(case):
    data = random_data(case, np)
    expected = Expected(case, data)
    assert set(expected.parts) == {0, case.problem.pairs - 1}
    for pair in expected.parts:
        plane = right_plane(case, data, pair)
        assert expected.error(pair, plane) < 1e-12
        assert expected.error(pair, plane[::-1]) > TOLERANCE
        assert expected.error(pair, plane[:-1]) == float("inf")
        assert expected.error(pair, np.full_like(plane, np.nan)) == float("inf")


@pytest.mark.parametrize("case", [*PEAKS, *REGISTRATIONS], ids=lambda case: case.name)
def test_peaks(case):
    data = random_data(case, np)
    expected = Expected(case, data)
    for pair in expected.parts:
        plane = right_plane(case, data, pair)
        assert expected.error(pair, plane.argmax()) == 0
        assert expected.error(pair, plane.argmax() - 1) > TOLERANCE
        shift = np.array(np.unravel_index(plane.argmax(), plane.shape)) + case.problem.first_shift
        assert shift.any() or pair % 5, "the data hold no displacement to find"


@pytest.mark.parametrize("case", REGISTRATIONS, ids=lambda case: case.name)
def test_scores_are_those_of_the_definition(case):
    data = random_data(case, np)
    for right in data.rights[:2].astype(np.float64):
        left = data.lefts[0].astype(np.float64)
        expected = plain.zncc(left, right, window_of(case.problem))
        np.testing.assert_allclose(check._scores(case.problem, left, right), expected, atol=1e-12)


@pytest.mark.share(3)
def test_cases_are_timed_and_recorded(tmp_path):
    stream = io.StringIO()
    console = Console(file=stream, width=200)
    run_pipeline(console, Size(1, 10, 32), ["unchecked, no report", "start"], "cpu", tmp_path / "r.json")
    known = json.loads((tmp_path / "r.json").read_text())
    assert known["environment"]["date"]
    start, case = known["cases"]
    assert start["seconds"] > 0
    assert case["frames"] == 10
    assert case["frames_per_second_whole"] > 0
    assert case["timings"]["pace"] in case["timings"]["stages"]
    assert case["size"] == {"stacks": 1, "frames": 10, "side": 32}
    assert len(case["raw"]) == 3
    assert all(rate > 0 for rate in case["raw"].values())
    assert "the pace was set by" in stream.getvalue()
