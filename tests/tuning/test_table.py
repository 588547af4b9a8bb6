"""The table of `xcorr tune`: what it corrects, what it decides, and what is kept on disk."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from xcorr_app import __version__
from xcorr_app.correlation.choice import decide_peaks, decide_planes
from xcorr_app.decision import Candidate, Decision
from xcorr_app.filtering.array_choice import decide_bank, decide_mixing
from xcorr_app.filtering.choice import decide_filter
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime import tuned
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES
from xcorr_app.gpu.runtime.tuned import Row, TunedTable, by_measurements, load_table, save_table, table_path
from xcorr_app.tuning.domains import domains_named
from xcorr_app.tuning.filters import FilterCase

H100 = KNOWN_DEVICES["h100"]
KEY = {"device": "NVIDIA H100 80GB HBM3", "driver": "13000", "version": __version__}
ABOUT = {**KEY, "date": "2026-11-22", "problems": 3, "sizes": []}


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "cache"))


def decision(chosen="a", at=(0.0, 0.0), **microseconds):
    candidates = tuple(Candidate(name, "", time) for name, time in microseconds.items())
    return Decision(chosen, "", "by the models", candidates, at)


def times(found):
    return {candidate.name: candidate.microseconds for candidate in found.candidates}


def rows(domain="planes", expected=10.0, **missed):
    return [Row(domain, name, place, expected, value) for name, at in missed.items() for place, value in at.items()]


def corrections(table, found):
    """Natural logarithms of corrected over expected times."""
    after = times(table.preferred("planes", found))
    return {each.name: math.log(after[each.name] / each.microseconds) for each in found.candidates}


def test_one_that_takes_longer_than_expected_is_left():
    table = TunedTable(
        ABOUT, rows(a={(0.0, 0.0): math.log(2), (1.0, 0.0): math.log(2)}, b={(0.0, 0.0): 0.0, (1.0, 0.0): 0.0})
    )
    found = table.preferred("planes", decision(a=10.0, b=12.0))
    assert found.engine == "b"
    assert found.reason.startswith("the least time by measurements on this device")
    assert times(found)["a"] == pytest.approx(20, rel=0.03)
    assert times(found)["b"] == pytest.approx(12, rel=0.03)


def test_a_correction_is_local():
    near, far = {(0.0, 0.0): 0.5}, {(40.0, 0.0): -0.5}
    table = TunedTable(ABOUT, rows(a=near | far, b={(0.0, 0.0): 0.0}))
    here, there, between, beyond = (
        corrections(table, decision(a=10.0, at=at))["a"] for at in ((0.0, 0.0), (40.0, 0.0), (20.0, 0.0), (20.0, 900.0))
    )
    assert here > between > there
    assert between == pytest.approx(beyond, abs=1e-9)


def test_without_a_table_or_of_another_domain_nothing_is_decided_anew():
    before = decision(a=10.0, b=12.0)
    assert by_measurements(before, "planes", (3.0,), None) == before
    assert by_measurements(before, "planes", (3.0,), None).coordinates == (3.0,)
    table = TunedTable(ABOUT, rows("filters", a={(0.0, 0.0): 5.0}))
    assert by_measurements(before, "planes", (0.0, 0.0), table) == before


def test_a_choice_by_rule_that_has_no_model_stays():
    table = TunedTable(ABOUT, rows(b={(0.0, 0.0): -3.0}))
    before = Decision("fft", "", "by rule", (Candidate("fft"), Candidate("b", "", 12.0)), (0.0, 0.0))
    assert table.preferred("planes", before) == before


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


def slower(domain, decided, factor):
    """A table by which the chosen candidate takes so many times as long as all others."""
    expected = {each.name: each.microseconds for each in decided.candidates if each.microseconds is not None}
    missed = {name: math.log(factor) if name == decided.name else 0.0 for name in expected}
    return TunedTable(
        ABOUT, [Row(domain, name, decided.coordinates, expected[name], value) for name, value in missed.items()]
    )


def decide_gaussian(limits, **how):
    (filters,) = domains_named(("filters",), limits)
    case = FilterCase((5, 301, 299), "float32", "reflect", sigmas=(3.0, 3.0))
    if not how:
        return filters.decision(case)
    return decide_filter(case.request, case.taps, case.shape, np.dtype(case.dtype), limits, **how)


DECISIONS = {
    "filters": decide_gaussian,
    "planes": lambda limits: decide_planes(
        Problem.full_plane((57, 61), (57, 61), rights=9, rights_per_left=9), limits=limits
    ),
    "registration": lambda limits: decide_peaks(
        Problem((301, 255), (301, 255), (-9, -9), (19, 19), rights=33, rights_per_left=33), limits=limits
    ),
    "banks": lambda limits: decide_bank((3, 5, 127, 131), np.dtype("float32"), (17, 5, 5, 7), limits),
    "mixing": lambda limits: decide_mixing(np.dtype("float32"), np.dtype("float32"), (13, 17), 3, 5001, limits),
}


@pytest.mark.parametrize("domain", DECISIONS)
def test_every_choice_asks_the_devices_table(domain):
    before = DECISIONS[domain](H100)
    assert len(before.candidates) > 1
    assert all(math.isfinite(value) for value in before.coordinates)
    assert len(before.coordinates) > 3
    after = DECISIONS[domain](replace(H100, tuned=slower(domain, before, 1000.0)))
    assert after.name != before.name
    assert after.name in {candidate.name for candidate in before.candidates}
    as_expected = DECISIONS[domain](replace(H100, tuned=slower(domain, before, 1.0)))
    expected = {each.name: each.microseconds for each in before.candidates if each.microseconds is not None}
    assert as_expected.name == min(expected, key=expected.get)
    assert expected[before.name] <= 1.06 * expected[as_expected.name]  # rules differ little from the models


def test_what_was_asked_for_is_run_whatever_was_measured():
    problem = Problem.full_plane((57, 61), (57, 61))
    asked = decide_planes(problem, engine="fft", limits=H100)
    table = TunedTable(ABOUT, [Row("planes", "fft", (0.0,) * 6, 10.0, 9.0)])
    assert decide_planes(problem, engine="fft", limits=replace(H100, tuned=table)) == asked


def test_a_filter_that_was_asked_for_is_not_replaced():
    asked = decide_gaussian(H100, engine="separable")
    table = slower("filters", replace(asked, coordinates=decide_gaussian(H100).coordinates), 1000.0)
    assert decide_gaussian(replace(H100, tuned=table), engine="separable") == asked
    assert decide_gaussian(replace(H100, tuned=table)).name != asked.name


def test_the_key_names_device_driver_and_version(monkeypatch):
    runtime = type(
        "R", (), {"getDeviceProperties": staticmethod(lambda n: {"name": b"GPU 7"}), "driverGetVersion": lambda: 13010}
    )
    cupy = type("X", (), {"cuda": type("C", (), {"runtime": runtime})})
    monkeypatch.setattr(tuned.importlib, "import_module", lambda name: cupy)
    assert tuned.device_key(0) == {"device": "GPU 7", "driver": "13010", "version": __version__}
