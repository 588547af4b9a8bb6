"""Memory between launches, with a pretended CuPy: made once for a stream, and each stream and thread has its own."""

from __future__ import annotations

import sys
import threading
import types

import numpy as np
import pytest

from xcorr_app.gpu.runtime.scratch import Scratch


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
