"""Frames brought to a device ahead of their use, and what fails on the way."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from tests.io.samples import noise, write_plain
from xcorr_app.batch.align.frames import frames_along
from xcorr_app.batch.values import SIZE
from xcorr_app.errors import DeviceMemoryError
from xcorr_app.gpu.runtime.upload import NOTE, Uploader
from xcorr_app.io import Checksums, HeldSource, MemoryBudget
from xcorr_app.io.finding.discover import discover
from xcorr_app.pipeline import stack_upload
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.pipeline.stack_upload import DeviceFrames, StackUpload

SHAPE = (50, 20, 24)


class Carrier:
    """`fails` uploads are refused, and memory for the arrays of the numbers `refused`."""

    def __init__(self, fails=0, refused=()):
        self.fails, self.refused, self.sent, self.made = fails, list(refused), 0, 0
        self._own = threading.local()

    def room(self, shape, dtype):
        if self.made in self.refused:
            self.refused.remove(self.made)
            raise DeviceMemoryError
        self.made += 1
        return np.full(shape, 99, dtype)

    def own_buffer(self, shape, dtype):
        size = int(np.prod(shape)) * dtype.itemsize
        if getattr(self._own, "buffer", np.empty(0)).size < size:
            self._own.buffer = np.empty(size, np.uint8)
        return self._own.buffer[:size].view(dtype).reshape(shape)

    def send(self, host, there):
        if self.fails:
            self.fails -= 1
            raise MemoryError
        there[:] = host
        host[:] = 0  # whoever reads it afterwards would see
        self.sent += len(host)


@pytest.fixture
def readers(monkeypatch):
    monkeypatch.setattr(stack_upload, "_BYTES_A_PART", 3 * 20 * 24 * 2)
    with ThreadPoolExecutor(3) as pool:
        yield pool


@pytest.fixture(params=[0, 1 << 30], ids=["read again", "held"])
def stack(request, tmp_path):
    data = noise(SHAPE)
    write_plain(tmp_path / "a.tif", data)
    with HeldSource(discover(tmp_path / "a.tif").series[0].open(), MemoryBudget(request.param)) as source:
        yield data, frames_along(source, "T", 0, np)


@pytest.fixture(params=[True, False], ids=["pinned", "pageable"])
def uploader(request, monkeypatch):
    """That of a device; what it says of memory that is not pinned is said once."""
    import cupy

    def refuse(_size):
        raise cupy.cuda.runtime.CUDARuntimeError(2)

    if not request.param:
        monkeypatch.setattr(cupy.cuda, "alloc_pinned_memory", refuse)
    uploader = Uploader()
    yield uploader
    assert uploader.notes == ([] if request.param else [NOTE])


def test_frames_are_those_of_the_file_and_are_read_once(stack, readers):
    data, host = stack
    carrier, rng = Carrier(), np.random.default_rng(0)
    with StackUpload(host, carrier, readers) as frames:
        for _ in range(60):
            start = int(rng.integers(0, 50))
            stop = int(rng.integers(start + 1, 51))
            chunk = frames.read(start, stop)
            np.testing.assert_array_equal(chunk.frames, data[start:stop])
            assert (chunk.start, chunk.unreadable) == (start, {})
    assert carrier.sent == 50


def test_checksums_are_taken_as_frames_pass(tmp_path, readers):
    write_plain(tmp_path / "a.tif", noise(SHAPE))
    checksums = Checksums([tmp_path / "a.tif"])
    source = HeldSource(discover(tmp_path / "a.tif").series[0].open(), MemoryBudget(0), checksums)
    with StackUpload(frames_along(source, "T", 0, np), Carrier(), readers) as frames:
        frames.read(0, 50)
    assert checksums.of(tmp_path / "a.tif")._result is not None
    assert checksums.finished() == Checksums([tmp_path / "a.tif"]).finished()


def test_what_failed_is_told_and_may_work_for_who_asks_next(stack, readers):
    data, host = stack
    failed = 0
    with StackUpload(host, Carrier(fails=2), readers) as frames:
        for _ in range(3):
            try:
                np.testing.assert_array_equal(frames.read(0, 50).frames, data)
            except MemoryError:
                failed += 1
    assert failed == 2


def test_frames_that_cannot_be_read_are_named_and_zero(tmp_path, readers):
    data = noise(SHAPE)
    write_plain(tmp_path / "a.tif", data)
    spec = discover(tmp_path / "a.tif").series[0]
    host = frames_along(HeldSource(spec.open(), MemoryBudget(0)), "T", 0, np)
    with (tmp_path / "a.tif").open("r+b") as file:
        file.truncate(30 * 20 * 24 * 2)
    with StackUpload(host, Carrier(), readers) as frames:
        assert frames.settled() is frames
        chunk = frames.read(20, 50)
    assert set(chunk.unreadable) == set(range(20, 50))
    assert not chunk.frames.any()


@pytest.mark.gpu
def test_on_a_device(cupy, stack, monkeypatch, uploader):
    monkeypatch.setattr(stack_upload, "_BYTES_A_PART", 3 * 20 * 24 * 2)
    data, host = stack
    with ThreadPoolExecutor(3, initializer=uploader.use) as readers:
        for _ in range(20):
            # Memory goes back and forth between work and uploads.
            with StackUpload(host, uploader, readers) as frames:
                found = frames.settled().read(0, 50).frames
                assert isinstance(found, cupy.ndarray)
                sums = [cupy.asnumpy((found[i].astype(cupy.float64) ** 2).sum()) for i in range(50)]
            np.testing.assert_array_equal(sums, (data.astype(float) ** 2).sum(axis=(1, 2)))


@contextmanager
def frames_on(host, carrier, **more):
    with (
        ThreadPoolExecutor(3, initializer=getattr(carrier, "use", None)) as readers,
        DeviceFrames(host, partial(StackUpload, carrier=carrier, readers=readers, **more)) as frames,
    ):
        yield frames


def test_ranges_in_order_are_brought_ahead_and_are_the_frames(stack):
    data, host = stack
    carrier = Carrier()
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
    with frames_on(host, Carrier(refused=[after])) as frames:
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
    with frames_on(host, Carrier()) as frames:
        for start in (0, 30, 4, 20, 0, 12):
            np.testing.assert_array_equal(frames.read(start, start + 8).frames, data[start : start + 8])
    assert frames._coming is None  # nor is memory held once it is closed


@pytest.mark.gpu
def test_ranges_on_a_device(cupy, stack, uploader):
    data, host = stack
    with frames_on(host, uploader) as frames:
        for _ in range(2):
            for start in range(0, 50, 16):
                found = frames.read(start, min(start + 16, 50)).frames
                assert isinstance(found, cupy.ndarray)
                np.testing.assert_array_equal(found.get(), data[start : start + 16])


@pytest.mark.parametrize(
    ("text", "size"), [("500MB", 500_000_000), ("2GB", 2_000_000_000), ("1.5g", 1_500_000_000), ("7", 7), ("0MB", 0)]
)
def test_sizes(text, size):
    assert SIZE.read(text) == size


@pytest.mark.parametrize(("limit", "room"), [(0, 25), (60, 12), (1000, 25), (5, 0)])
def test_a_quarter_of_the_device_memory_that_is_left_holds_frames(monkeypatch, limit, room):
    pool = SimpleNamespace(get_limit=lambda: limit, used_bytes=lambda: 10, free_bytes=lambda: 20)
    device = SimpleNamespace(Device=lambda: SimpleNamespace(mem_info=(80, 200)))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(get_default_memory_pool=lambda: pool, cuda=device))
    assert StackResources.fits_on_device(room)
    assert not StackResources.fits_on_device(room + 1)
