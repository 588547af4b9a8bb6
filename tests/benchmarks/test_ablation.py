"""The ablations of the four documents without a device: what is planned, recorded, printed and drawn."""

import json
from dataclasses import replace

from benchmarks.ablation import command
from benchmarks.ablation.correlation import CORRELATION
from benchmarks.ablation.drawing import draw, write_drawing
from benchmarks.ablation.tables import groups_of
from benchmarks.harness.device_rates import DeviceRates
from benchmarks.harness.fastest import Outcome
from benchmarks.work.records import WorkResult, WorkTiming
from tests.benchmarks.runner import run_benchmarks
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES

H100 = KNOWN_DEVICES["h100"]
RATES = DeviceRates(30e12, 3e12, 5e-7)


def names_of(suite, group):
    return {way.name for case in suite.cases if case.group == group for way in suite.contenders(case)}


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


def test_a_picture_has_a_panel_a_group_a_line_a_way_and_is_the_same_again(tmp_path):
    cases = [case for case in CORRELATION.cases if case.group.startswith("warps per block")]
    record = json.loads(json.dumps(a_record(CORRELATION, cases)))
    for timing in record["timings"]:
        timing["memory_bytes"] = 0
    figure = draw(record)
    assert [axes.get_title(loc="left") for axes in figure.axes] == list(groups_of(record))
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert set(lines) == names_of(CORRELATION, "warps per block, warp-shuffle")
    expected = [
        timing["multiple_of_floor"]
        for timing in groups_of(record)["warps per block, warp-shuffle"]["1 warp a block"].values()
    ]
    assert list(lines["1 warp a block"].get_ydata()) == expected
    write_drawing(record, tmp_path / "a.svg")
    write_drawing(record, tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert "</svg>" in (tmp_path / "a.svg").read_text()


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
