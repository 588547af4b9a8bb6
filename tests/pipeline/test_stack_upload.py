"""All frames of a stack brought to a device by several threads, with NumPy in CuPy's place."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.io.samples import noise, write_plain
from xcorr_app.batch.align.frames import frames_along
from xcorr_app.gpu.runtime.upload import NOTE, Uploader
from xcorr_app.io import Checksums, HeldSource, MemoryBudget
from xcorr_app.io.finding.discover import discover
from xcorr_app.pipeline import stack_upload
from xcorr_app.pipeline.stack_upload import StackUpload

SHAPE = (50, 20, 24)


class Carrier:
    """`fails` uploads are refused; none is done before `gate` opens."""

    def __init__(self, fails=0):
        self.fails, self.sent, self.gate = fails, 0, threading.Event()
        self.gate.set()
        self._own = threading.local()

    def room(self, shape, dtype):
        return np.full(shape, 99, dtype)

    def own_buffer(self, shape, dtype):
        size = int(np.prod(shape)) * dtype.itemsize
        if getattr(self._own, "buffer", np.empty(0)).size < size:
            self._own.buffer = np.empty(size, np.uint8)
        return self._own.buffer[:size].view(dtype).reshape(shape)

    def send(self, host, there):
        assert self.gate.wait(30)
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


@pytest.fixture
def stack(tmp_path):
    data = noise(SHAPE)
    write_plain(tmp_path / "a.tif", data)
    source = HeldSource(discover(tmp_path / "a.tif").series[0].open(), MemoryBudget(0))
    return data, frames_along(source, "T", 0, np)


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
@pytest.mark.parametrize("pinned", [True, False])
def test_on_a_device(stack, monkeypatch, pinned):
    import cupy

    def refuse(_size):
        raise cupy.cuda.runtime.CUDARuntimeError(2)

    if not pinned:
        monkeypatch.setattr(cupy.cuda, "alloc_pinned_memory", refuse)
    monkeypatch.setattr(stack_upload, "_BYTES_A_PART", 3 * 20 * 24 * 2)
    data, host = stack
    uploader = Uploader()
    with ThreadPoolExecutor(3, initializer=uploader.use) as readers:
        for _ in range(20):
            # Memory goes back and forth between work and uploads.
            with StackUpload(host, uploader, readers) as frames:
                found = frames.settled().read(0, 50).frames
                assert isinstance(found, cupy.ndarray)
                sums = [cupy.asnumpy((found[i].astype(cupy.float64) ** 2).sum()) for i in range(50)]
            np.testing.assert_array_equal(sums, (data.astype(float) ** 2).sum(axis=(1, 2)))
    assert uploader.notes == ([] if pinned else [NOTE])
