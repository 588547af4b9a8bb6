"""Frames brought to a device ahead of who asks for them, with NumPy in CuPy's place."""

import threading

import numpy as np
import pytest
import tifffile

from tests.io.samples import noise, write_imagej, write_plain
from xcorr_app.batch.align.frames import SourceFrames
from xcorr_app.gpu.runtime.upload import NOTE, Uploader
from xcorr_app.io import HeldSource, MemoryBudget
from xcorr_app.io.finding.discover import series_of_file
from xcorr_app.io.limits import Limits
from xcorr_app.pipeline.device_frames import DeviceFrames
from xcorr_app.registration.stack.passes import Pass


class Buffer:
    def __init__(self, owner, shape, dtype):
        self.owner, self.host = owner, np.empty(shape, dtype)
        self._there = np.empty(shape, dtype)

    def send(self, count):
        self.owner.sent.append(count)
        self._there[:count] = self.host[:count]
        self.host[:] = 0  # whoever reads it afterwards would see

    def take(self, count):
        return self._there[:count].copy()


class Buffers:
    """`fails` is how many buffers are refused once `after` were made."""

    def __init__(self, after=None, fails=0):
        self.sent, self.made, self.users = [], 0, set()
        self._after, self._fails = after, fails

    def use(self):
        self.users.add(threading.current_thread().name)

    def buffer(self, shape, dtype):
        if self._after is not None and self.made >= self._after and self._fails:
            self._fails -= 1
            raise MemoryError
        self.made += 1
        return Buffer(self, shape, dtype)


@pytest.fixture(params=[0, 1 << 30], ids=["read again", "held"])
def stack(request, tmp_path):
    data = noise((50, 20, 24))
    write_plain(tmp_path / "a.tif", data)
    source = HeldSource(series_of_file(tmp_path / "a.tif", Limits()).open(), MemoryBudget(request.param))
    with source:
        yield data, SourceFrames(source, "T", 0, np)


def frames_on(host, buffers, **more):
    return DeviceFrames(host, buffers, threads=3, **more)


def test_ranges_in_order_are_brought_ahead_and_are_the_frames(stack):
    data, host = stack
    buffers = Buffers()
    with frames_on(host, buffers) as frames:
        for _ in range(3):
            for start in range(0, 50, 16):
                chunk = frames.read(start, min(start + 16, 50))
                np.testing.assert_array_equal(chunk.frames, data[start : start + 16])
                assert chunk.unreadable == {}
        np.testing.assert_array_equal(frames.read(7, 8).frames, data[7:8])
    assert buffers.made <= 3
    assert sum(buffers.sent) == 3 * 50 + 1
    assert len(buffers.users) == 1


def test_ranges_in_any_order(stack):
    data, host = stack
    rng = np.random.default_rng(0)
    with frames_on(host, Buffers()) as frames:
        for _ in range(60):
            start = int(rng.integers(0, 50))
            stop = int(rng.integers(start + 1, 51))
            np.testing.assert_array_equal(frames.read(start, stop).frames, data[start:stop])


@pytest.mark.parametrize("after", [0, 1])
def test_memory_that_runs_out_is_told_to_who_asks_and_the_next_may_work(stack, after):
    data, host = stack
    failed = 0
    with frames_on(host, Buffers(after, fails=1)) as frames:
        for start, stop in ((0, 8), (8, 30), (30, 50)):
            try:
                chunk = frames.read(start, stop)
            except MemoryError:
                failed += 1
                chunk = frames.read(start, stop)
            np.testing.assert_array_equal(chunk.frames, data[start:stop])
    assert failed == 1


def test_what_was_brought_ahead_and_is_not_asked_for_leaves_its_buffer_to_others(stack):
    data, host = stack
    buffers = Buffers()
    with frames_on(host, buffers) as frames:
        for start in (0, 30, 4, 20, 0, 12):
            np.testing.assert_array_equal(frames.read(start, start + 8).frames, data[start : start + 8])
            frames._coming[1].result()
    # One is worked on, one is brought: those of ranges that nobody wanted are used again.
    assert buffers.made <= 3
    assert len(buffers.sent) == 12
    assert frames._coming is None  # nor is memory held once it is closed


def test_damaged_frames_are_named(tmp_path):
    data = noise((30, 8, 9))
    write_plain(tmp_path / "a.tif", data, compression="zlib")
    with tifffile.TiffFile(tmp_path / "a.tif") as tif:
        place, size = tif.pages[17].dataoffsets[0], tif.pages[17].databytecounts[0]
    content = bytearray((tmp_path / "a.tif").read_bytes())
    content[place + 2 : place + size] = bytes(size - 2)
    (tmp_path / "a.tif").write_bytes(content)
    source = series_of_file(tmp_path / "a.tif", Limits()).open()
    with frames_on(SourceFrames(source, "T", 0, np), Buffers()) as frames:
        chunk = frames.read(10, 20)
    assert list(chunk.unreadable) == [17]
    assert "page 17 cannot be decoded" in chunk.unreadable[17]
    assert not chunk.frames[7].any()
    np.testing.assert_array_equal(chunk.frames[:7], data[10:17])


def test_averages_are_of_their_own_type(tmp_path):
    data = noise((6, 3, 8, 9), "uint8")
    write_imagej(tmp_path / "a.tif", data, "TZYX")
    source = series_of_file(tmp_path / "a.tif", Limits()).open()
    with frames_on(SourceFrames(source, "T", 0, np), Buffers()) as frames:
        found = frames.read(0, 6).frames
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, data.mean(axis=1))


def test_waiting_is_told(stack):
    told = []
    with frames_on(stack[1], Buffers(), waited=lambda stage, seconds: told.append((stage, seconds))) as frames:
        list(Pass(50, 480, on_device=False).over("measure", lambda start, stop: frames.read(start, stop) and None))
    assert {stage for stage, _ in told} == {"read"}


@pytest.mark.gpu
def test_on_a_device(stack):
    import cupy

    data, host = stack
    uploader = Uploader()
    with frames_on(host, uploader) as frames:
        for _ in range(2):
            for start in range(0, 50, 16):
                found = frames.read(start, min(start + 16, 50)).frames
                assert isinstance(found, cupy.ndarray)
                np.testing.assert_array_equal(found.get(), data[start : start + 16])
    assert uploader.notes == []


@pytest.mark.gpu
def test_without_pinned_memory_it_is_said_once(stack, monkeypatch):
    import cupy

    def refuse(_size):
        raise cupy.cuda.runtime.CUDARuntimeError(2)

    monkeypatch.setattr(cupy.cuda, "alloc_pinned_memory", refuse)
    data, host = stack
    uploader = Uploader()
    with frames_on(host, uploader) as frames:
        for start in range(0, 48, 8):
            np.testing.assert_array_equal(frames.read(start, start + 8).frames.get(), data[start : start + 8])
    assert uploader.notes == [NOTE]
