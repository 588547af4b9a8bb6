"""Changed files are read as the same or refused; bombs take no memory; the judge sees a greedy reader."""

import os
import sys
import zlib

import imagecodecs
import numpy as np
import pytest
import tifffile

from tests.fuzz import judge, targets
from tests.fuzz.judge import SLACK, memory, run
from tests.fuzz.targets import TARGETS
from xcorr_app import read_stack
from xcorr_app.errors import DamagedFileError

COUNT = int(os.environ.get("XCORR_FUZZ", "40"))
"""Files of each kind, the same in every run."""


@pytest.mark.parametrize("name", TARGETS)
def test_changed_files(tmp_path, name):
    outcomes, findings = run(name, COUNT, 0, tmp_path)
    assert findings == []
    assert outcomes.total() == COUNT


HELD, IMAGE = bytes(1 << 26), np.zeros((1 << 13, 1 << 13), np.uint8)
BOMBS = {
    "zlib": lambda: zlib.compress(HELD, 1),
    "lzw": lambda: imagecodecs.lzw_encode(HELD),
    "zstd": lambda: imagecodecs.zstd_encode(HELD),
    "lzma": lambda: imagecodecs.lzma_encode(HELD, level=0),
    "packbits": lambda: b"\x81\0" * (1 << 20),
    "jpeg": lambda: imagecodecs.jpeg8_encode(IMAGE),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_no_memory(tmp_path, name):
    dtype = np.uint8 if name == "jpeg" else np.uint16
    how = {"shape": (1, 64, 64), "dtype": dtype, "photometric": "minisblack", "metadata": None}
    tifffile.imwrite(tmp_path / "a.tif", iter([BOMBS[name]()]), compression=name, **how)
    before = memory()
    with pytest.raises(DamagedFileError):
        read_stack(tmp_path / "a.tif")
    assert memory(peak=True) - before < 2 * (2 * 64 * 64) + SLACK


@pytest.mark.skipif(sys.platform != "linux", reason="memory is told by Linux alone")
@pytest.mark.parametrize(("size", "seen"), [(1 << 26, 6), (1 << 20, 0)])
def test_a_reader_that_takes_more_than_a_file_declares_is_seen(tmp_path, monkeypatch, size, seen):
    plain = targets.TARGETS["plain"]

    def read(path):
        return np.uint16(np.ones(size, np.uint8)[0] - 1) + plain.read(path)

    monkeypatch.setitem(targets.TARGETS, "plain", plain._replace(read=read))
    _, findings = judge.run("plain", 6, 0, tmp_path)
    assert [finding.what.startswith("took 6") for finding in findings] == [True] * seen
