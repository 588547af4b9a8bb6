"""Letting the disk begin early: of which bytes, and that it harms nothing where the system refuses."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest

from xcorr_app.io import StackMetadata, StackWriter
from xcorr_app.io.writing import background_write, write


def test_every_plane_is_begun_with_once(tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(write, "_BYTES_AT_ONCE", 4 * 30 * 20)
    monkeypatch.setattr(write, "begin_write_out", lambda _, offset, size: begun.append((offset, size)))
    metadata = StackMetadata("TYX", (12, 30, 20), np.dtype(np.uint16))
    planes = np.random.default_rng(0).integers(0, 999, (12, 30, 20)).astype(np.uint16)
    with StackWriter(tmp_path / "a.tif", metadata) as writer:
        for plane in planes:
            writer.write(plane)
            # Of a disk that keeps up: ranges are left out where many wait.
            writer._wait(0)
            if writer._ahead is not None:
                writer._ahead.submit(lambda: None).result()
    content = (tmp_path / "a.tif").read_bytes()
    first = content.index(planes[0].tobytes())
    begun.sort()
    assert begun[0][0] == first
    assert sum(size for _, size in begun) == planes.nbytes
    assert all(offset + size == after for (offset, size), (after, _) in itertools.pairwise(begun))


def test_who_is_refused_goes_on(tmp_path, monkeypatch):
    with (tmp_path / "a").open("wb") as file:
        file.write(b"1234")
        file.flush()
        background_write.begin_write_out(file.fileno(), 0, 4)
    assert (tmp_path / "a").read_bytes() == b"1234"
    background_write.begin_write_out(-1, 0, 4)
    monkeypatch.setattr(background_write, "_sync_file_range", lambda: None)
    background_write.begin_write_out(-1, 0, 4)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone has the call")
def test_linux_takes_it(tmp_path):
    call = background_write._sync_file_range()
    assert call is not None
    with (tmp_path / "a").open("wb") as file:
        file.write(bytes(1 << 16))
        file.flush()
        assert call(file.fileno(), 0, 1 << 16, background_write._WRITE) == 0
    assert call(-1, 0, 4, background_write._WRITE) == -1
