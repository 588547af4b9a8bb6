"""`xcorr tune` without a device: problems, time, rows and words, with a clock and a measurer of the test's own."""

import sys
from dataclasses import replace

import pytest

from tests.batch.movies import xcorr
from xcorr_app import __version__
from xcorr_app.cli import env
from xcorr_app.gpu.runtime import tuned
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES
from xcorr_app.gpu.runtime.tuned import TunedTable, load_table
from xcorr_app.tuning import command
from xcorr_app.tuning.domains import domains_named
from xcorr_app.tuning.measure import Outcome
from xcorr_app.tuning.run import tune

H100 = KNOWN_DEVICES["h100"]
SLOWER = {"direct": 1.4, "fft": 0.8, "tensor": 1.0}


class Clock:
    """Stands still but for what is measured, which takes a second each, and compiling, which takes five."""

    def __init__(self):
        self.seconds = 100.0

    def __call__(self):
        return self.seconds


def made_up(clock, failing=()):
    """Measure by the models' times, some engines slower than expected."""
    problems = []

    def measure(domain, problem):
        clock.seconds += 1
        problems.append((domain.name, problem))
        if domain.name in failing:
            raise MemoryError("no room")
        decided = domain.decision(problem)
        expected = {each.name: each.microseconds for each in decided.candidates}
        found = {
            each.name: each.microseconds * SLOWER.get(each.engine, 1.0)
            for each in decided.candidates
            if each.microseconds
        }
        return Outcome(domain.name, str(problem), decided.name, "", found, found, expected)

    def compile_kernels(launches):
        clock.seconds += 5
        return len(list(launches))

    return {"measure": measure, "compile_kernels": compile_kernels, "clock": clock}, problems


def test_what_cannot_be_measured_is_told_and_the_others_count():
    how, problems = made_up(Clock(), failing=("banks",))
    told = []
    found = tune(domains_named(("planes", "banks"), H100), 20, tell=told.append, **how)
    assert len(found.outcomes) == len([name for name, _ in problems if name == "planes"])
    assert sum("MemoryError: no room" in line for line in told) == len(problems) - len(found.outcomes) > 0


@pytest.fixture
def device(monkeypatch, tmp_path):
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path))
    key = {"device": "NVIDIA H100", "driver": "13000", "version": __version__}
    monkeypatch.setattr(command, "select_device", lambda text: None)
    monkeypatch.setattr(command, "current_device", lambda: 0)
    monkeypatch.setattr(command, "device_limits", lambda _: H100)
    monkeypatch.setattr(command, "device_key", lambda _: key)
    how, problems = made_up(Clock())
    monkeypatch.setattr(command, "tune", lambda domains, seconds, tell: tune(domains, seconds, tell=tell, **how))
    return key, problems


def test_the_command_keeps_a_table_and_says_where(device):
    key, problems = device
    run = xcorr("tune", "--minutes", "0.5", "--sizes", "128x96")
    assert run.code == 0, run.stderr
    table = load_table(key)
    assert table.about["problems"] == len(problems) == 25
    assert table.about["sizes"] == ["128x96"]
    lines = run.stdout.splitlines()
    assert lines[-1] == f"Written: {tuned.table_path(key)}"
    planes = next(line for line in lines if line.startswith("planes: "))
    assert "of the choices were within 10 % of the best; time over the shipped model's: " in planes
    assert "direct:combined 1.40" in planes
    assert "fft 0.80" in planes


def test_too_little_time_is_an_error_that_names_the_remedy(device, monkeypatch):
    monkeypatch.setattr(command, "tune", lambda domains, seconds, tell: tune(domains, 0, tell=tell))
    run = xcorr("tune")
    assert run.code == 1
    assert "give more --minutes" in run.stderr
    assert load_table(device[0]) is None


@pytest.mark.parametrize("value", ["512", "512x", "4x512", "axb", ""])
def test_sizes_are_rows_times_columns(value):
    assert xcorr("tune", "--sizes", value).code == 2


def test_without_a_gpu_there_is_nothing_to_tune():
    run = xcorr("tune", "--device", "cpu")
    assert run.code == 1
    assert "nothing to tune on the CPU" in run.stderr


def test_without_cupy_no_device_is_advised_that_cannot_be_tuned(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    run = xcorr("tune")
    assert run.code == 1
    assert "install xcorr-app[gpu]; there is nothing to tune without a GPU" in run.stderr
    assert "--device cpu" not in run.stderr


def test_env_says_which_measurements_decide(monkeypatch, tmp_path):
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("xcorr_app.gpu.runtime.placement.current_device", lambda: 0)
    about = {"device": "GPU", "driver": "13000", "version": __version__, "date": "2026-11-22", "problems": 140}
    asked = []
    for table in (None, TunedTable(about, ())):
        monkeypatch.setattr(
            "xcorr_app.gpu.runtime.limits.device_limits", lambda _, table=table: replace(H100, tuned=table)
        )
        asked.append(env._measured_by())
    assert asked[0] == "chooses by measurements of NVIDIA H200, scaled; xcorr tune measures this GPU"
    assert asked[1].startswith("chooses by 140 problems measured on this GPU on 2026-11-22: ")
    assert asked[1].endswith(f"xcorr-tuned-GPU-13000-{__version__}.json")
