"""``xcorr unmix --device`` and ``--explain``, without a GPU: stand-ins, and what is said where there is none."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from tests.batch.movies import record, refused
from tests.cli.test_unmix import MATRIX, facts_of, result_of, run_unmix
from tests.io.samples import noise, write_ome, write_shaped
from xcorr_app import read_stack, unmix
from xcorr_app.batch.unmix import run as batch_unmix
from xcorr_app.errors import DeviceMemoryError
from xcorr_app.gpu.runtime import memory
from xcorr_app.gpu.runtime.select import Device
from xcorr_app.pipeline import planes as chunks
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.registration.stack import passes


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


@pytest.mark.parametrize("places", [0, 1, 2])
def test_the_cpu_goes_on_where_device_memory_runs_out(tmp_path, monkeypatch, matrix_file, places):
    data = noise((2, 3, 6, 7), "uint16")
    write_ome(tmp_path / "in.ome.tif", data, "TCYX")
    monkeypatch.setattr(batch_unmix, "select_device", lambda _: Device(Small, "small"))
    monkeypatch.setattr(StackResources, "fits_on_device", lambda *_: True)
    monkeypatch.setattr(StackResources, "on_device", lambda _, frames, xp: Small(frames, places))
    monkeypatch.setattr("xcorr_app.correlation.engines.limits_of", lambda _: None)
    monkeypatch.setattr(passes, "bytes_within_limit", lambda: 1 << 34)
    monkeypatch.setattr(memory, "with_second_try", lambda job, *at, what: job(*at))
    for module in (chunks, memory):
        monkeypatch.setattr(module, "release_unused", lambda: None)
    run = run_unmix(tmp_path / "in.ome.tif", tmp_path / "o", "--matrix", matrix_file)
    assert run.code == 0
    np.testing.assert_array_equal(read_stack(result_of(tmp_path / "o")).data, unmix(data, MATRIX))
    note = chunks.NOTE.format("mixed", places)
    ran_out = [note] if places < 2 else []
    assert facts_of(tmp_path / "o")["notes"] == ran_out
    assert record(tmp_path / "o")["device"] == "small"
    assert run.stdout.count(note) == len(ran_out)
