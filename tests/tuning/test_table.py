"""The table of `xcorr tune`: what it corrects, what it decides, and what is kept on disk."""

import json
from dataclasses import replace

import pytest

from xcorr_app import __version__
from xcorr_app.correlation.choice import decide_planes
from xcorr_app.decision import Candidate, Decision
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES
from xcorr_app.gpu.runtime.tuned import Row, TunedTable, by_measurements, load_table, save_table, table_path

H100 = KNOWN_DEVICES["h100"]
KEY = {"device": "NVIDIA H100 80GB HBM3", "driver": "13000", "version": __version__}
ABOUT = {**KEY, "date": "2026-11-22", "problems": 3, "sizes": []}


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "cache"))


def decision(chosen="a", at=(0.0, 0.0), **microseconds):
    candidates = tuple(Candidate(name, "", time) for name, time in microseconds.items())
    return Decision(chosen, "", "by the models", candidates, at)


def rows(domain="planes", expected=10.0, **missed):
    return [Row(domain, name, place, expected, value) for name, at in missed.items() for place, value in at.items()]


def test_without_a_table_or_of_another_domain_nothing_is_decided_anew():
    before = decision(a=10.0, b=12.0)
    assert by_measurements(before, "planes", (3.0,), None) == before
    assert by_measurements(before, "planes", (3.0,), None).coordinates == (3.0,)
    table = TunedTable(ABOUT, rows("filters", a={(0.0, 0.0): 5.0}))
    assert by_measurements(before, "planes", (0.0, 0.0), table) == before


def test_a_table_is_kept_for_its_device_driver_and_version_alone():
    table = TunedTable(ABOUT, rows(a={(1.0, 2.5): 0.25}))
    path = save_table(table)
    assert path == table_path(KEY)
    assert path.name == f"xcorr-tuned-NVIDIA-H100-80GB-HBM3-13000-{__version__}.json"
    again = load_table(KEY)
    assert (again.about, again.rows) == (table.about, table.rows)
    assert [other.name for other in path.parent.iterdir()] == [path.name]
    for name in KEY:
        assert load_table({**KEY, name: "another"}) is None
    # A file that was copied to another's name is not taken for its table.
    other = {**KEY, "driver": "12080"}
    table_path(other).write_bytes(path.read_bytes())
    assert load_table(other) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"about": {}}', '{"about": 3, "rows": []}', "\x00"])
def test_a_file_that_is_no_table_counts_as_none(text):
    table_path(KEY).parent.mkdir(parents=True, exist_ok=True)
    table_path(KEY).write_text(text)
    assert load_table(KEY) is None


def test_rows_that_are_none_count_as_no_table():
    table_path(KEY).parent.mkdir(parents=True, exist_ok=True)
    table_path(KEY).write_text(json.dumps({"about": ABOUT, "rows": [["planes", "a", [1.0], 10.0, "much"]]}))
    assert load_table(KEY) is None


def test_what_was_asked_for_is_run_whatever_was_measured():
    problem = Problem.full_plane((57, 61), (57, 61))
    asked = decide_planes(problem, engine="fft", limits=H100)
    table = TunedTable(ABOUT, [Row("planes", "fft", (0.0,) * 6, 10.0, 9.0)])
    assert decide_planes(problem, engine="fft", limits=replace(H100, tuned=table)) == asked
