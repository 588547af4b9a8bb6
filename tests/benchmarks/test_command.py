"""``python -m benchmarks`` where there is no GPU, and with values it cannot take."""

import pytest

from benchmarks.commands import bench
from benchmarks.harness import record
from tests.benchmarks.runner import run_benchmarks
from xcorr_app.gpu.runtime.device import DeviceStatus


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(record, "cuda_status", lambda: DeviceStatus(available=False, reason="no driver here"))


COMMANDS = ("correlation", "filter", "im2win", "pointwise")


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize("options", [(), ("--quick",), ("--device", "cuda:1"), ("--only", "1")])
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
        (("--device", "cpu"), "the benchmark runs on cuda or cuda:N"),
        (("--device", "cuda:x"), "the benchmark runs on cuda or cuda:N"),
        (("--only", "no such case"), "no case's name contains 'no such case'"),
        (("--json", ""), "is empty"),
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
    assert set(commands) == {*COMMANDS, "ablation", "moving", "pipeline", "same"}
    for name in commands:
        text = run_benchmarks(name, "--help").stdout
        assert f"python -m benchmarks {name}" in text.partition("Example")[2]
