"""A GPU that is asked for and not there, or there and not usable."""

import sys
import types

import pytest

from tests.batch.movies import record, refused, write_movie, xcorr


@pytest.fixture
def stack(tmp_path):
    return write_movie(tmp_path / "m.tif")


@pytest.fixture
def old_driver(monkeypatch):
    """A cupy that imports well and fails in its own probe, as it does with a driver that is too old."""
    cupy = types.ModuleType("cupy")

    def probe():
        raise RuntimeError("cudaErrorInsufficientDriver: CUDA driver version is\ninsufficient for CUDA runtime version")

    cupy.cuda = types.SimpleNamespace(runtime=types.SimpleNamespace(getDeviceCount=probe))
    monkeypatch.setitem(sys.modules, "cupy", cupy)


@pytest.fixture
def no_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)


def test_cuda_asked_for_and_no_cupy(tmp_path, stack, no_cupy):
    refused(xcorr("align", stack, "-o", tmp_path / "out", "--device", "cuda"), "CuPy cannot be imported", "install")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_cuda_asked_for_and_driver_too_old(tmp_path, stack, old_driver, device):
    refused(
        xcorr("align", stack, "-o", tmp_path / "out", "--device", device), "InsufficientDriver", "driver version is"
    )


@pytest.mark.parametrize("device", ["tpu", "cuda:x", "cuda:", "CPU", ""])
def test_device_that_is_not_known(tmp_path, stack, device):
    refused(xcorr("align", stack, "-o", tmp_path / "out", "--device", device), "use auto, cpu, cuda or cuda:N")


@pytest.mark.parametrize("engine", ["direct", "tensor"])
@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_engine_of_the_gpu_asked_for_and_none_there(tmp_path, stack, no_cupy, engine, device):
    run = xcorr("align", stack, "-o", tmp_path / "out", "--engine", engine, "--device", device)
    refused(run, f"engine '{engine}' cannot run on numpy arrays: it runs on a CUDA device")
    assert not (tmp_path / "out").exists()


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
