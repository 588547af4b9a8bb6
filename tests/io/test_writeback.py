"""Bytes are on their way to the disk before anybody waits for it, and what is asked for never fails a write."""

import os
import sys

import pytest

from tests.io.samples import noise
from xcorr_app.io import read_stack, write_stack
from xcorr_app.io.writing import write as write_module
from xcorr_app.io.writing import writeback


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sync_file_range is Linux's")
def test_the_system_takes_what_it_is_asked(tmp_path):
    begin = writeback._sync_file_range()
    with (tmp_path / "a").open("wb") as file:
        file.write(os.urandom(5000))
        file.flush()
        assert begin(file.fileno(), 0, 5000, writeback._WRITE) == 0
        assert begin(file.fileno(), -1, 5000, writeback._WRITE) == -1


@pytest.mark.parametrize("is_known", [True, False])
def test_each_part_of_a_file_is_begun_once(tmp_path, monkeypatch, is_known):
    planes, asked = noise((6, 20, 30)), []
    monkeypatch.setattr(write_module, "_BYTES_AT_ONCE", 2 * planes[0].nbytes)
    function = (lambda *said: asked.append(said[1:]) or -1) if is_known else None
    monkeypatch.setattr(writeback, "_sync_file_range", lambda: function)
    write_stack(tmp_path / "a.tif", planes)
    assert (read_stack(tmp_path / "a.tif").data == planes).all()
    size = 2 * planes[0].nbytes
    begins = sorted(offset for offset, _, _ in asked)
    assert [length for _, length, _ in asked] == [size] * (3 if is_known else 0)
    assert [begin - begins[0] for begin in begins] == ([0, size, 2 * size] if is_known else [])
