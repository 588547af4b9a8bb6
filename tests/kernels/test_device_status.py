"""Every way of having no CUDA device becomes a sentence; a cache that cannot be written is passed by."""

from __future__ import annotations

import builtins
import importlib
import sys
from types import SimpleNamespace

import pytest

from xcorr_app.errors import DeviceError
from xcorr_app.gpu import compile as compiling
from xcorr_app.gpu.device import cuda_status, require_cuda


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
    assert "install xcorr-app[gpu]" in status.reason


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


def test_the_source_carries_defines_and_the_digest_of_the_headers():
    source = compiling.kernel_source("correlation/combined", {"TILE_X": 12, "INPUT_TYPE": "unsigned char"})
    first, *rest = source.splitlines()
    assert first.startswith("// headers ")
    assert rest[:2] == ["#define INPUT_TYPE unsigned char", "#define TILE_X 12"]
    assert "combined(const Input* lefts" in source


class Compiler:
    """CuPy's RawModule over a cache folder that may refuse to be written."""

    def __init__(self, readable_folders):
        self.folders, self.readable = [], readable_folders

    def module(self, **_):
        folder = compiling.os.environ.get("CUPY_CACHE_DIR", "home")
        self.folders.append(folder)
        if folder == "home" and not self.readable:
            raise PermissionError(13, "Read-only file system", folder)
        return SimpleNamespace(get_function=lambda entry: SimpleNamespace(entry=entry))


@pytest.mark.parametrize("writable", [True, False])
def test_a_cache_that_cannot_be_written_is_passed_by(cupy_is, monkeypatch, writable):
    monkeypatch.delenv("CUPY_CACHE_DIR", raising=False)
    compiler, module = Compiler(writable), fake_cupy()
    module.RawModule = compiler.module
    cupy_is(module)
    defines = {"WRITABLE": int(writable)}
    function = compiling.kernel_function("correlation/warp_shuffle", defines)
    assert function.entry == "warp_shuffle"
    assert len(compiler.folders) == (1 if writable else 2)
    assert "CUPY_CACHE_DIR" not in compiling.os.environ
    assert compiling.kernel_function("correlation/warp_shuffle", defines) is function


def test_a_compile_error_names_the_kernel(cupy_is):
    def refuse(**_):
        raise RuntimeError("expected a ';'")

    module = fake_cupy()
    module.RawModule = refuse
    cupy_is(module)
    with pytest.raises(DeviceError, match=r"multi_row\.cu does not compile.*expected a ';'"):
        compiling.kernel_function("correlation/multi_row", {"BROKEN": 1})
