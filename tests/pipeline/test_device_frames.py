"""Frames brought to a device ahead of who asks for them, with NumPy in CuPy's place."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

from tests.io.samples import noise, write_plain
from tests.pipeline.test_stack_upload import Carrier
from xcorr_app.batch.align.frames import frames_along
from xcorr_app.errors import DeviceMemoryError
from xcorr_app.gpu.runtime.upload import NOTE, Uploader
from xcorr_app.io import HeldSource, MemoryBudget
from xcorr_app.io.finding.discover import discover
from xcorr_app.pipeline.stack_upload import DeviceFrames, StackUpload


class Room(Carrier):
    """`fails` is how often memory is refused once `after` arrays were made."""

    def __init__(self, after=None, refused=0):
        super().__init__()
        self.made, self._after, self._refused = 0, after, refused

    def room(self, shape, dtype):
        if self._after is not None and self.made >= self._after and self._refused:
            self._refused -= 1
            raise DeviceMemoryError
        self.made += 1
        return super().room(shape, dtype)


@pytest.fixture(params=[0, 1 << 30], ids=["read again", "held"])
def stack(request, tmp_path):
    data = noise((50, 20, 24))
    write_plain(tmp_path / "a.tif", data)
    source = HeldSource(discover(tmp_path / "a.tif").series[0].open(), MemoryBudget(request.param))
    with source:
        yield data, frames_along(source, "T", 0, np)


@contextmanager
def frames_on(host, carrier, **more):
    with (
        ThreadPoolExecutor(3, initializer=getattr(carrier, "use", None)) as readers,
        DeviceFrames(host, partial(StackUpload, carrier=carrier, readers=readers, **more)) as frames,
    ):
        yield frames


def test_ranges_in_order_are_brought_ahead_and_are_the_frames(stack):
    data, host = stack
    carrier = Room()
    with frames_on(host, carrier) as frames:
        for _ in range(3):
            for start in range(0, 50, 16):
                chunk = frames.read(start, min(start + 16, 50))
                np.testing.assert_array_equal(chunk.frames, data[start : start + 16])
                assert chunk.unreadable == {}
        np.testing.assert_array_equal(frames.read(7, 8).frames, data[7:8])
    assert carrier.made == 3 * 4 + 1
    assert carrier.sent == 3 * 50 + 1


@pytest.mark.parametrize("after", [0, 1, 2])
def test_memory_that_runs_out_is_told_to_who_asks_and_the_next_may_work(stack, after):
    """For a range that is brought ahead, it is asked for once more when that is wanted."""
    data, host = stack
    failed = 0
    with frames_on(host, Room(after, refused=1)) as frames:
        for start, stop in ((0, 8), (8, 30), (30, 50)):
            try:
                chunk = frames.read(start, stop)
            except DeviceMemoryError:
                failed += 1
                chunk = frames.read(start, stop)
            np.testing.assert_array_equal(chunk.frames, data[start:stop])
    assert failed == (after != 1)


def test_what_was_brought_ahead_and_is_not_asked_for_is_given_up(stack):
    data, host = stack
    with frames_on(host, Room()) as frames:
        for start in (0, 30, 4, 20, 0, 12):
            np.testing.assert_array_equal(frames.read(start, start + 8).frames, data[start : start + 8])
    assert frames._coming is None  # nor is memory held once it is closed


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
