"""``xcorr unmix --device`` and ``--explain``, without a GPU: stand-ins, and what is said where there is none."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from tests.batch.movies import refused
from tests.cli.test_unmix import MATRIX, run_unmix
from tests.io.samples import noise, write_ome, write_shaped
from xcorr_app import read_stack, unmix
from xcorr_app.batch.unmix import stack as batch_unmix
from xcorr_app.errors import DeviceMemoryError
from xcorr_app.gpu.runtime import memory
from xcorr_app.gpu.runtime.select import Device
from xcorr_app.pipeline import planes as chunks
from xcorr_app.registration.stack import passes


@pytest.fixture
def matrix_file(tmp_path):
    np.savetxt(tmp_path / "m.csv", MATRIX, delimiter=",")
    return tmp_path / "m.csv"


def test_the_device_is_named_and_one_that_is_missing_refused(tmp_path, monkeypatch, matrix_file):
    monkeypatch.setitem(sys.modules, "cupy", None)
    write_shaped(tmp_path / "in.tif", noise((3, 6, 7)), "CYX")
    run = run_unmix(tmp_path / "in.tif", tmp_path / "o.tif", "--matrix", matrix_file, "--device", "auto")
    assert run.stdout.splitlines()[0].startswith("no GPU is used: CuPy cannot be imported")
    assert json.loads((tmp_path / "o.tif.json").read_text())["device"] == "CPU"
    run = run_unmix(tmp_path / "in.tif", tmp_path / "p.tif", "--matrix", matrix_file, "--device", "cpu")
    assert "GPU" not in run.stdout
    options = ("--matrix", matrix_file, "--device", "cuda")
    refused(run_unmix(tmp_path / "in.tif", tmp_path / "q.tif", *options), "CuPy cannot be imported")


class Small:
    """A device that has room for one image at a time, and none from the n-th on."""

    def __init__(self, images):
        self.left = images

    def asarray(self, array):
        if self.left == 0 or len(array) > 1:
            raise DeviceMemoryError("out of memory")
        self.left -= 1
        return array


@pytest.mark.parametrize("images", [0, 1, 2])
def test_the_cpu_goes_on_where_device_memory_runs_out(tmp_path, monkeypatch, matrix_file, images):
    data = noise((2, 3, 6, 7), "uint16")
    write_ome(tmp_path / "in.ome.tif", data, "TCYX")
    monkeypatch.setattr(batch_unmix, "select_device", lambda _: Device(Small(images), "small"))
    monkeypatch.setattr(passes, "bytes_within_limit", lambda: 1 << 34)
    monkeypatch.setattr(memory, "with_second_try", lambda job, *at, what: job(*at))
    for module in (chunks, memory):
        monkeypatch.setattr(module, "release_unused", lambda: None)
    run = run_unmix(tmp_path / "in.ome.tif", tmp_path / "o.ome.tif", "--matrix", matrix_file)
    assert run.code == 0
    np.testing.assert_array_equal(read_stack(tmp_path / "o.ome.tif").data, unmix(data, MATRIX))
    record = json.loads((tmp_path / "o.ome.tif.json").read_text())
    note = chunks.NOTE.format("mixed", images)
    ran_out = [note] if images < 2 else []
    assert (record["notes"], record["device"]) == (ran_out, "small")
    assert run.stdout.count(note) == len(ran_out)
