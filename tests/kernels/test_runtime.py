"""The runtime without a device: which there is, scratch arrays, one ladder where memory runs out."""

import builtins
import importlib
import sys
import threading
import types
from types import SimpleNamespace

import numpy as np
import pytest

from xcorr_app.errors import DeviceError, DeviceMemoryError
from xcorr_app.gpu.runtime import memory
from xcorr_app.gpu.runtime.device import cuda_status, require_cuda
from xcorr_app.gpu.runtime.memory import in_parts, or_on_host, with_smaller
from xcorr_app.gpu.runtime.scratch import Scratch


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


@pytest.fixture
def stream(monkeypatch):
    stream = types.SimpleNamespace(ptr=1, is_capturing=lambda: False)
    cupy = types.ModuleType("cupy")
    cupy.zeros, cupy.empty = np.zeros, lambda count, kind: np.full(count, 77, kind)
    cupy.cuda = types.SimpleNamespace(get_current_stream=lambda: stream)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    return stream


def test_arrays_and_counters_are_as_they_were_asked_for(stream):
    first, second, counters = Scratch((3, "float32"), (0, "uint32"), counters=5)()
    assert [(array.size, array.dtype) for array in (first, second)] == [(3, np.float32), (0, np.uint32)]
    assert counters.tolist() == [0] * 5
    assert counters.dtype == np.int32


def test_they_are_made_once_for_a_stream(stream):
    scratch = Scratch((3, "float32"), counters=2)
    first = scratch()
    assert scratch() is first
    stream.ptr = 2
    others = scratch()
    assert all(other is not array for other, array in zip(others, first, strict=True))
    stream.ptr = 1
    assert scratch() is first


def test_a_thread_has_its_own(stream):
    scratch, others = Scratch((3, "float32"), counters=2), []
    thread = threading.Thread(target=lambda: others.append(scratch()))
    thread.start()
    thread.join()
    assert all(other is not array for other, array in zip(others[0], scratch(), strict=True))


def test_what_a_graph_makes_is_for_the_graph_alone(stream):
    scratch = Scratch((3, "float32"), counters=2)
    stream.is_capturing = lambda: True
    captured = scratch()
    assert captured in scratch._of_captures.values()  # which every replay of the graph writes
    stream.is_capturing = lambda: False
    assert scratch() is not captured
    kept = scratch()
    stream.is_capturing = lambda: True
    assert scratch() is kept


@pytest.fixture(autouse=True)
def released(monkeypatch):
    calls = []
    monkeypatch.setattr(memory, "release_unused", lambda: calls.append(1))
    device = SimpleNamespace(Device=lambda: SimpleNamespace(mem_info=(10**9, 4 * 10**9)))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=device))
    return calls


class Room:
    """Takes so many items at a time, and tells which ranges it was asked for."""

    def __init__(self, most):
        self.most, self.asked = most, []

    def __call__(self, start, stop):
        self.asked.append((start, stop))
        if stop - start > self.most:
            raise DeviceMemoryError("none left")
        return list(range(start, stop))


@pytest.mark.parametrize("most", [1, 2, 3, 7, 10])
@pytest.mark.parametrize("at_once", [None, 1, 4, 99])
def test_every_item_is_done_once_and_in_order(most, at_once):
    parts = list(in_parts(Room(most), 10, at_once=at_once))
    assert [stop for stop, _ in parts][-1] == 10
    assert [item for _, part in parts for item in part] == list(range(10))


def test_parts_stay_small_from_where_memory_ran_out(released):
    room = Room(2)
    list(in_parts(room, 9))
    assert room.asked == [(0, 9), (0, 4), (0, 2), (2, 4), (4, 6), (6, 8), (8, 9)]
    assert len(released) == 2


def test_an_item_that_does_not_fit_is_tried_again_then_an_error(released):
    room = Room(0)
    with pytest.raises(DeviceMemoryError, match=r"one image: 1\.00 of 4\.0 GB"):
        list(in_parts(room, 2, what="one image"))
    assert room.asked == [(0, 2), (0, 1), (0, 1), (0, 1)]
    assert len(released) == 3


def test_an_item_that_does_not_fit_can_be_done_otherwise():
    assert list(in_parts(Room(0), 3, alone=lambda i: -i)) == [(1, 0), (2, -1), (3, -2)]


def test_sizes_shrink_until_one_fits(released):
    def job(size):
        if size > 3:
            raise DeviceMemoryError("none left")
        return size

    assert with_smaller(job, [9, 4, 2, 1], "nothing fits") == 2
    assert len(released) == 2
    with pytest.raises(DeviceMemoryError, match="nothing fits"):
        with_smaller(job, [9, 4], "nothing fits")


def test_the_host_takes_over(released):
    assert or_on_host(lambda: 1, lambda: 2) == 1
    assert not released
    assert or_on_host(lambda: Room(0)(0, 1), lambda: 2) == 2
    assert released
