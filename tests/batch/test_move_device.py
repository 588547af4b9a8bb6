"""Moving on a device whose memory runs out, with NumPy in CuPy's place: the CPU goes on, and says so once."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import tifffile

from tests.batch.movies import align, movie, record, write_movie
from xcorr_app.batch.align import moving
from xcorr_app.batch.align import stack as align_stack
from xcorr_app.batch.align.frames import SourceFrames
from xcorr_app.errors import DeviceMemoryError
from xcorr_app.gpu.runtime import memory
from xcorr_app.pipeline import chunks
from xcorr_app.registration.stack import passes


class OutOfMemoryError(MemoryError):
    """Stands in for CuPy's."""

    __module__ = "cupy.cuda.memory"


@pytest.mark.parametrize("planes", [0, 1, 3])
def test_what_was_measured_is_moved(tmp_path, monkeypatch, planes):
    stack = write_movie(tmp_path / "m.tif")
    assert align(stack, "-o", tmp_path / "cpu").code == 0
    taken, released = [], []

    def asarray(array):
        if len(taken) + len(array) > planes:
            raise OutOfMemoryError
        taken.extend(array)
        return array

    def with_second_try(job, *arguments, what):
        raise DeviceMemoryError(what)

    real = moving.move_stack

    def on_device(frames, *others):
        pretended = SourceFrames(frames.source, frames.axis, frames.channel, SimpleNamespace(asarray=asarray))
        return real(pretended, *others)

    monkeypatch.setattr(align_stack, "move_stack", on_device)
    monkeypatch.setattr(passes, "bytes_within_limit", lambda: 1 << 34)
    monkeypatch.setattr(memory, "release_unused", lambda: None)
    monkeypatch.setattr(memory, "with_second_try", with_second_try)
    monkeypatch.setattr(chunks, "release_unused", lambda: released.append(1))
    run = align(stack, "-o", tmp_path / "device")
    assert run.code == 0
    found, expected = (tifffile.imread(tmp_path / name / "m" / "m_aligned.tif") for name in ("device", "cpu"))
    np.testing.assert_array_equal(found, expected)
    assert len(found) == len(movie()) > planes
    assert len(taken) == planes
    assert run.stdout.count(chunks.NOTE.format("moved", planes)) == len(released) == 1
    assert not record(tmp_path / "device")["failed"]
    moving_record = record(tmp_path / "device")["stacks"]["m"]["moving"]
    assert moving_record["engine"] == "opencv"
    assert "2 taps along each axis" in moving_record["reason"]
