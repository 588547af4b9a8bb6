"""What a device needs is loaded by threads while a command is read: all of it where there is a device, else nothing."""

from __future__ import annotations

import threading

import pytest

from xcorr_app.errors import DeviceError
from xcorr_app.gpu.runtime import select


@pytest.fixture
def loaded(monkeypatch):
    """Names of what is loaded, CuPy being there to be found."""
    done = []
    monkeypatch.delitem(select.sys.modules, "cupy", raising=False)
    monkeypatch.setattr(select.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(select.importlib, "import_module", done.append)
    monkeypatch.setattr(select, "require_cuda", lambda: None)
    monkeypatch.setattr(select, "select_device", done.append)
    return done


def wait():
    for name in ("xcorr-device", "xcorr-device-fft"):
        for thread in threading.enumerate():
            if thread.name == name:
                thread.join()


def test_a_device_and_what_cupy_imports_later(loaded):
    select.begin_loading("auto")
    wait()
    assert sorted(loaded) == ["auto", "cupyx.scipy.fft"]


def test_nothing_more_without_a_device(loaded, monkeypatch):
    def refuse():
        raise DeviceError("no driver")

    monkeypatch.setattr(select, "require_cuda", refuse)
    select.begin_loading("auto")
    wait()
    assert loaded == []


def test_nothing_for_the_cpu(loaded):
    select.begin_loading("cpu")
    wait()
    assert loaded == []
