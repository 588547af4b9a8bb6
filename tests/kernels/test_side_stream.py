"""Work beside other work waits for what was there before, and is waited for: with a stand-in for CuPy's streams."""

from __future__ import annotations

import sys
import types

import pytest

from xcorr_app.gpu.runtime import side_stream


class Stream:
    """Keeps what happens in it, in order; records are numbered events."""

    def __init__(self, name, log, entered):
        self.name, self._log, self._entered = name, log, entered

    def record(self):
        self._log.append((self.name, "records"))
        return self.name, len(self._log)

    def wait_event(self, event):
        self._log.append((self.name, "waits for", event))

    def __enter__(self):
        self._entered.append(self)

    def __exit__(self, *_):
        self._entered.pop()


@pytest.fixture
def log(monkeypatch):
    happened: list = []
    entered: list = []
    current = Stream("current", happened, entered)
    entered.append(current)
    cuda = types.SimpleNamespace(
        get_current_stream=lambda: entered[-1], Stream=lambda *, non_blocking: Stream("beside", happened, entered)
    )
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(side_stream, "current_device", lambda: 0)
    side_stream._stream.cache_clear()
    yield lambda text: happened.append((entered[-1].name, text)), happened
    side_stream._stream.cache_clear()


def test_both_streams_wait_for_each_other(log):
    does, happened = log
    does("input")

    def job():
        does("job")
        return 7

    started = side_stream.SideStream(job)
    does("other work")
    assert started.result() == 7
    does("uses it")
    assert happened == [
        ("current", "input"),
        ("current", "records"),
        ("beside", "waits for", ("current", 2)),
        ("beside", "job"),
        ("beside", "records"),
        ("current", "other work"),
        ("current", "waits for", ("beside", 5)),
        ("current", "uses it"),
    ]


def test_a_job_that_fails_leaves_the_current_stream(log):
    does, happened = log
    with pytest.raises(MemoryError):
        side_stream.SideStream(lambda: (_ for _ in ()).throw(MemoryError))
    does("goes on")
    assert happened[-1] == ("current", "goes on")
