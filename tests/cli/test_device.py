"""Devices: asked for and not there, and what `--explain` says of the choice."""

import sys
import types

import numpy as np
import pytest

from tests.batch.movies import record, refused, write_movie, xcorr
from tests.io.samples import noise, write_shaped
from xcorr_app.gpu.runtime.limits import H200


@pytest.fixture
def old_driver(monkeypatch):
    """A cupy that imports well and fails in its own probe, as it does with a driver that is too old."""
    cupy = types.ModuleType("cupy")

    def probe():
        raise RuntimeError("cudaErrorInsufficientDriver: CUDA driver version is\ninsufficient for CUDA runtime version")

    cupy.cuda = types.SimpleNamespace(runtime=types.SimpleNamespace(getDeviceCount=probe))
    monkeypatch.setitem(sys.modules, "cupy", cupy)


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_cuda_asked_for_and_driver_too_old(tmp_path, stack, old_driver, device):
    refused(
        xcorr("align", stack, "-o", tmp_path / "out", "--device", device), "InsufficientDriver", "driver version is"
    )


def test_auto_falls_back_with_one_line(tmp_path, stack, old_driver):
    run = xcorr("align", stack, "-o", tmp_path / "out")
    assert run.code == 0
    told = [line for line in run.stdout.splitlines() if "GPU" in line]
    assert len(told) == 1
    assert "cudaErrorInsufficientDriver" in told[0]
    assert run.stderr == ""
    assert record(tmp_path / "out")["device"] == "CPU"


def test_env_says_why_there_is_no_gpu(old_driver):
    run = xcorr("env")
    assert run.code == 0
    assert "cudaErrorInsufficientDriver" in run.stdout
    for engine in ("direct", "tensor"):
        assert f"engine        {engine} on the CPU: it runs on a CUDA device" in run.stdout


RUNS = {
    "align": (),
    "filter": ("--gaussian", "2"),
    "unmix": ("--matrix", "m.csv"),
}


@pytest.fixture
def stacks(tmp_path, monkeypatch):
    """Two movies, two stacks with channels, and a matrix for them."""
    monkeypatch.chdir(tmp_path)
    np.savetxt(tmp_path / "m.csv", np.eye(3), delimiter=",")
    for name in ("a", "b"):
        write_movie(tmp_path / "movies" / f"{name}.tif")
    (tmp_path / "channels").mkdir()
    for name in ("a", "b"):
        write_shaped(tmp_path / "channels" / f"{name}.tif", noise((3, 20, 30)), "CYX")
    return {"align": tmp_path / "movies", "filter": tmp_path / "movies", "unmix": tmp_path / "channels"}


@pytest.mark.parametrize("name", RUNS)
def test_every_stack_is_explained_as_it_is_recorded_and_nothing_written(tmp_path, stacks, name):
    run = xcorr(name, stacks[name], "-o", tmp_path / "out", "--device", "cpu", *RUNS[name], "--explain")
    assert (run.code, run.stderr) == (0, "")
    heads = [line for line in run.stdout.splitlines() if line.startswith(("a: ", "b: "))]
    assert [line[0] for line in heads] == ["a", "b"]
    assert not (tmp_path / "out").exists()
    assert xcorr(name, stacks[name], "-o", tmp_path / "out", "--device", "cpu", *RUNS[name]).code == 0
    for stack, facts in record(tmp_path / "out")["stacks"].items():
        (decision,) = facts["decisions"]
        assert set(decision) == {"engine", "kernel", "reason", "expected_microseconds"}
        assert f"{stack}: {decision['engine']}" in run.stdout
        assert decision["reason"] in run.stdout


@pytest.mark.parametrize(
    ("name", "options", "kernel"),
    [
        ("align", (), "direct:combined-peak"),
        ("filter", ("--box", "3"), "reuse:reuse"),
        ("unmix", ("--matrix", "m.csv"), "pointwise:mix"),
    ],
)
def test_the_choice_on_a_gpu(monkeypatch, tmp_path, stacks, name, options, kernel):
    monkeypatch.setattr(f"xcorr_app.batch.{name}.run.limits_of", lambda _: H200)
    run = xcorr(name, stacks[name], "-o", tmp_path / "out", *options, "--device", "cpu", "--explain")
    assert (run.code, run.stderr) == (0, "")
    assert kernel in next(line for line in run.stdout.splitlines() if line.startswith("a: "))


def test_planes_are_explained(tmp_path):
    left = write_movie(tmp_path / "m.tif")
    run = xcorr("correlate", left, left, "-o", tmp_path / "p.npy", "--form", "n-to-m", "--device", "cpu", "--explain")
    assert run.code == 0
    assert run.stdout.startswith("p.npy: ")
    assert not (tmp_path / "p.npy").exists()


def test_a_stack_that_would_fail_is_named(tmp_path, stacks):
    write_shaped(tmp_path / "channels" / "c.tif", noise((2, 20, 30)), "CYX")
    run = xcorr("unmix", stacks["unmix"], "-o", tmp_path / "out", "--matrix", "m.csv", "--explain")
    assert run.code == 0
    assert "c: cannot be done:" in run.stdout
    assert "m.csv needs 3" in run.stdout


def test_what_cannot_run_at_all_is_wrong_usage(tmp_path, stacks):
    run = xcorr("filter", stacks["filter"], "-o", stacks["filter"], "--box", "3", "--explain")
    refused(run, "lies in the input folder")
