"""`python -m benchmarks` where there is no GPU: values, pages, Nsight Compute, moving."""

import csv
import importlib.util
import os
import re
import shutil
import subprocess
import sys

import pytest

from benchmarks import warping
from benchmarks.commands import bench
from benchmarks.harness import record
from tests.benchmarks.runner import run_benchmarks
from tests.device import NEEDS_DEVICE
from tests.test_docs import PAGES
from tests.test_house import ROOT
from xcorr_app.gpu.runtime.device import DeviceStatus


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(record, "cuda_status", lambda: DeviceStatus(available=False, reason="no driver here"))


COMMANDS = ("correlation", "filter", "pointwise")


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize("options", [(), ("--quick",), ("--only", "1")])
@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_gpu_one_line_says_so(command, options, tmp_path):
    path = tmp_path / "results.json"
    run = run_benchmarks(command, "--json", path, *options)
    assert run.code == 1
    assert run.lines_of_error == ["xcorr: the benchmark measures a GPU and there is none: no driver here"]
    assert run.stdout == ""
    assert not path.exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--only", "no such case"), "no case's name contains 'no such case'"),
        (("--json", ""), "is no file in a folder that exists"),
        (("--json", "."), "'.' is no file in a folder that exists"),
        (("--json", "nowhere/results.json"), "is no file in a folder that exists"),
    ],
)
@pytest.mark.parametrize("command", COMMANDS)
def test_wrong_values_are_wrong_usage(command, options, words):
    run = run_benchmarks(command, *options)
    assert run.code == 2
    assert words in " ".join(run.stderr.split())


def test_every_benchmark_is_documented():
    commands = bench.commands
    assert set(commands) == {*COMMANDS, "ablation", "pipeline"}
    for name in commands:
        text = run_benchmarks(name, "--help").stdout
        assert f"python -m benchmarks {name}" in text.partition("Example")[2]


TEXT = {page: page.read_text(encoding="utf-8") for page in PAGES}
RECORDS = ROOT / "benchmarks" / "results"
NAMED = re.compile(r"[a-z0-9_]+\.(?:json|csv)")


def test_every_record_is_named_on_a_page():
    named = {name for text in TEXT.values() for name in NAMED.findall(text)}
    # A page names the profiles of the four documents together.
    kept = {path.name for path in RECORDS.iterdir() if path.suffix in (".json", ".csv")}
    assert kept - named == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_of_a_page_are_there(page):
    text = " ".join(TEXT[page].split())
    for module in re.findall(r"python -m (benchmarks\.[a-z_.]+[a-z])", text):
        assert importlib.util.find_spec(module), module
    for command in re.findall(r"python -m benchmarks ([a-z0-9]+)", text):
        assert command in bench.commands
    for name in re.findall(r"benchmarks/results/([a-z0-9_]+\.(?:json|csv|txt))", text):
        assert (RECORDS / name).exists(), name


@pytest.mark.parametrize("order", warping.SHIFTED)
def test_shifts_are_timed_beside_peers(order):
    row = warping.shifted_on_cpu(order, 3, 24)
    assert row["one_core"] > 0
    assert (row["scipy"] is None) == (order not in (1, 3))


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("kind", "order"), [*(("shift", order) for order in warping.SHIFTED), ("field", 1), ("matrix", 3)]
)
def test_on_a_device_answers_are_compared_and_timed(cupy, kind, order):
    row = warping.on_device_row(cupy, warping.Clock(repeats=1), kind, order, 6, 160)
    assert row["call"] > 0
    assert (row["launch"] is None) == (order == "fourier")


SCRIPT = ROOT / "benchmarks" / "ncu.sh"


def profiled(*words, **environment):
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    given = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": paths, **environment}
    done = subprocess.run([SCRIPT, *words], capture_output=True, text=True, env=given, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_is_asked_of_the_profiler(tmp_path):
    table = '"ID","Host Name","Kernel Name","dram__bytes.sum"\n"0","here","exchange","1,024"\n'
    (tmp_path / "ncu").write_text(f"#!/bin/sh\nprintf '{table}'\nprintf '%s\\n' \"$@\"\n")
    (tmp_path / "ncu").chmod(0o755)
    words = profiled("reuse", "64 images 1024^2: 3", PATH=f"{tmp_path}:{os.environ['PATH']}").splitlines()
    assert words[:2] == ['"ID","Kernel Name","dram__bytes.sum"', '"0","exchange","1,024"']
    assert words[-5:] == [sys.executable, "-m", "benchmarks.ablation.once", "reuse", "64 images 1024^2: 3"]
    metrics = words[words.index("--metrics") + 1].split(",")
    assert len(metrics) == len(set(metrics)) > 10
    assert all("__" in metric and " " not in metric for metric in metrics)


@pytest.mark.gpu
@NEEDS_DEVICE[-1]
@pytest.mark.skipif(shutil.which("ncu") is None, reason="Nsight Compute is not installed")
def test_every_way_has_a_row():
    said = profiled("correlation", "warps per block, warp-shuffle: 16^2").splitlines()
    assert sum(line.startswith("warps per block") for line in said) == 5
    rows = list(csv.DictReader(line for line in said if line.startswith('"')))[1:]  # the first has the units
    assert [row["Kernel Name"] for row in rows] == 5 * ["warp_shuffle"]
    assert all(float(row["smsp__inst_executed.sum"].replace(",", "")) > 0 for row in rows)
