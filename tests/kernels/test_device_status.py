"""Every way of having no CUDA device becomes a sentence."""

from __future__ import annotations

import builtins
import importlib
import sys
from types import SimpleNamespace

import pytest

from xcorr_app.errors import DeviceError
from xcorr_app.gpu.runtime.device import cuda_status, require_cuda


def fake_cupy(count=1, **changes):
    """Stand-in with the few functions that are asked."""
    properties = {"name": b"Test GPU", "major": 9, "minor": 0, "multiProcessorCount": 7, "totalGlobalMem": 2**30}
    runtime = {
        "getDeviceCount": lambda: count,
        "getDeviceProperties": lambda _: properties,
        "driverGetVersion": lambda: 13010,
        "runtimeGetVersion": lambda: 12080,
    }
    cuda = SimpleNamespace(runtime=SimpleNamespace(**(runtime | changes)), Device=lambda: SimpleNamespace(id=0))
    return SimpleNamespace(cuda=cuda)


@pytest.fixture
def cupy_is(monkeypatch):
    def put(module):
        monkeypatch.setitem(sys.modules, "cupy", module)

    return put


def test_a_device_is_described(cupy_is):
    cupy_is(fake_cupy())
    status = require_cuda()
    assert (status.available, status.reason, status.name) == (True, "", "Test GPU")
    assert (status.driver, status.runtime, status.compute_capability) == ("13.1", "12.8", "9.0")
    assert (status.multiprocessors, status.memory) == (7, 2**30)


def test_no_cupy(cupy_is):
    cupy_is(None)
    status = cuda_status()
    assert not status.available
    assert 'pip install ".[gpu]" in the checkout' in status.reason


def test_a_broken_cupy(monkeypatch):
    real = builtins.__import__

    def broken(name, *arguments, **named):
        if name == "cupy":
            raise RuntimeError("libcudart.so.13\nis damaged")
        return real(name, *arguments, **named)

    monkeypatch.setattr(importlib, "import_module", broken)
    assert cuda_status().reason == "CuPy fails on import: RuntimeError: libcudart.so.13 is damaged"


@pytest.mark.parametrize(
    "text",
    ["cudaErrorInsufficientDriver: CUDA driver version is insufficient", "cudaErrorNoDevice: no CUDA-capable device"],
)
def test_driver_too_old_or_no_device(cupy_is, text):
    def fail():
        raise RuntimeError(text)

    cupy_is(fake_cupy(getDeviceCount=fail))
    status = cuda_status()
    assert not status.available
    assert text in status.reason
    with pytest.raises(DeviceError, match="use the CPU"):
        require_cuda()


def test_no_device_listed(cupy_is):
    cupy_is(fake_cupy(count=0))
    assert "lists none" in cuda_status().reason
