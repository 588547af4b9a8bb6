"""``xcorr unmix --device`` and ``--explain``, without a GPU: stand-ins, and what is said where there is none."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from tests.batch.movies import record, refused
from tests.cli.test_unmix import MATRIX, run_unmix
from tests.io.samples import noise, write_shaped
from xcorr_app.errors import DeviceMemoryError


@pytest.fixture
def matrix_file(tmp_path):
    np.savetxt(tmp_path / "m.csv", MATRIX, delimiter=",")
    return tmp_path / "m.csv"


def test_the_device_is_named_and_one_that_is_missing_refused(tmp_path, monkeypatch, matrix_file):
    monkeypatch.setitem(sys.modules, "cupy", None)
    write_shaped(tmp_path / "in.tif", noise((3, 6, 7)), "CYX")
    run = run_unmix(tmp_path / "in.tif", tmp_path / "o", "--matrix", matrix_file, "--device", "auto")
    assert run.stdout.splitlines()[0].startswith("no GPU is used: CuPy cannot be imported")
    assert record(tmp_path / "o")["device"] == "CPU"
    run = run_unmix(tmp_path / "in.tif", tmp_path / "p", "--matrix", matrix_file, "--device", "cpu")
    assert "GPU" not in run.stdout
    options = ("--matrix", matrix_file, "--device", "cuda")
    refused(run_unmix(tmp_path / "in.tif", tmp_path / "q", *options), "CuPy cannot be imported")


class Small:
    """A device that has room for the planes of one place at a time, and none from the n-th on."""

    cuda = SimpleNamespace(Device=lambda: SimpleNamespace(use=lambda: None))

    def __init__(self, frames, places):
        self.frames, self.left = frames, places

    def read(self, start, stop):
        if self.left == 0 or stop - start > 3:
            raise DeviceMemoryError("out of memory")
        self.left -= 1
        return self.frames.read(start, stop)
