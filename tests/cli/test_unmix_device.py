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
from xcorr_app.batch.unmix.options import UnmixOptions
from xcorr_app.errors import DeviceMemoryError
from xcorr_app.gpu.runtime import memory
from xcorr_app.gpu.runtime.select import Device
from xcorr_app.io import HeldSource, MemoryBudget, StackWriter
from xcorr_app.io.channels import scan_with_colours
from xcorr_app.io.finding.discover import series_of_file
from xcorr_app.io.limits import Limits
from xcorr_app.pipeline.planes import HostPlanes


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


@pytest.mark.parametrize(("options", "whose"), [(("--explain",), "H200"), (("--explain-for", "t4"), "T4")])
def test_the_plan_is_explained_without_a_device(tmp_path, monkeypatch, matrix_file, options, whose):
    monkeypatch.setitem(sys.modules, "cupy", None)
    write_shaped(tmp_path / "in.tif", noise((3, 60, 70)), "CYX")
    run = run_unmix(tmp_path / "in.tif", tmp_path / "o.tif", "--matrix", matrix_file, *options)
    assert run.code == 0
    lines = run.stdout.splitlines()
    first = lines.index(f"Plan by the limits of {whose}, by name; this run computes on the CPU:")
    assert lines[0].startswith("o.tif: ")
    assert lines[first + 1].startswith("  kernel mix: ")
    assert "  2 filters x 3 channels on 4200 pixels" in lines
    assert not (tmp_path / "o.tif").exists()


def test_a_type_that_no_kernel_reads_is_said_so(tmp_path, matrix_file):
    write_shaped(tmp_path / "in.tif", noise((3, 6, 7), "float64"), "CYX")
    run = run_unmix(tmp_path / "in.tif", tmp_path / "o.tif", "--matrix", matrix_file, "--device", "cpu", "--explain")
    assert "no kernel mixes 3 channels of float64" in run.stdout


class Small:
    """A device whose memory runs out at the n-th image."""

    def __init__(self, images):
        self.left = images

    def asarray(self, array):
        if self.left == 0:
            raise DeviceMemoryError("out of memory")
        self.left -= 1
        return array


@pytest.mark.parametrize("images", [0, 1, 2])
def test_the_cpu_goes_on_where_device_memory_runs_out(tmp_path, monkeypatch, matrix_file, images):
    data = noise((2, 3, 6, 7), "uint16")
    write_ome(tmp_path / "in.ome.tif", data, "TCYX")
    released = []
    monkeypatch.setattr(batch_unmix, "select_device", lambda _: Device(Small(images), "small"))
    monkeypatch.setattr(batch_unmix, "release_unused", lambda: released.append(1))
    run = run_unmix(tmp_path / "in.ome.tif", tmp_path / "o.ome.tif", "--matrix", matrix_file)
    assert run.code == 0
    np.testing.assert_array_equal(read_stack(tmp_path / "o.ome.tif").data, unmix(data, MATRIX))
    record = json.loads((tmp_path / "o.ome.tif.json").read_text())
    ran_out = [batch_unmix.NOTE] if images < 2 else []
    assert (record["notes"], record["device"]) == (ran_out, "small")
    assert run.stdout.count(batch_unmix.NOTE) == len(ran_out) == len(released)


@pytest.mark.parametrize("axes", ["TCYX", "CTYX", "TZCYX", "CYX"])
@pytest.mark.parametrize(("most", "dies"), [(99, 99), (2, 99), (99, 0), (1, 2)])
def test_places_that_were_brought_are_mixed_many_at_once(tmp_path, monkeypatch, axes, most, dies):
    sizes = {"T": 5, "Z": 2, "C": 3, "Y": 6, "X": 7}
    data = noise(tuple(sizes[axis] for axis in axes), "uint16")
    write_ome(tmp_path / "in.ome.tif", data, axes)
    np.savetxt(tmp_path / "m.csv", MATRIX, delimiter=",")
    options = UnmixOptions(matrix=tmp_path / "m.csv")
    spec = series_of_file(tmp_path / "in.ome.tif", Limits(), scan_with_colours)
    plan = batch_unmix.plan_stack(
        spec, tmp_path / "o.ome.tif", batch_unmix.mixing_of(options), Device(Small(0), "small"), options
    )
    source = HeldSource(plan.stack.source, MemoryBudget(0))
    brought = HostPlanes(source, batch_unmix.channels_in_order(plan.stack))
    together, real = [], batch_unmix.unmix_counted

    def counted(stack, *matrix, **how):
        if stack.ndim == 4:
            if len(stack) > most or len(together) >= dies:
                raise DeviceMemoryError("out of memory")
            together.append(len(stack))
        return real(stack, *matrix, **how)

    monkeypatch.setattr(batch_unmix, "unmix_counted", counted)
    for module in (batch_unmix, memory):
        monkeypatch.setattr(module, "release_unused", lambda: None)
    monkeypatch.setattr(memory, "with_second_try", lambda job, *arguments, what: job(*arguments))
    result = batch_unmix.mix(plan, StackWriter(plan.out, plan.metadata), brought=brought)
    expected = np.moveaxis(unmix(data, MATRIX, channel_axis=axes.index("C")), axes.index("C"), -3)
    np.testing.assert_array_equal(read_stack(plan.out).data, expected)
    places = data.size // (3 * 6 * 7)
    assert result.notes == ((batch_unmix.NOTE,) if dies < places else ())
    assert sum(together) == (places if dies == 99 else min(dies, places))
    assert max(together, default=0) <= most
