"""``xcorr correlate`` writes a block of planes while it computes the next one."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from tests.batch.movies import write_movie
from tests.cli.planes import correlate
from xcorr_app.batch.correlate import plan as correlation_plan
from xcorr_app.batch.correlate import run as batch_correlate
from xcorr_app.errors import OutputError


@pytest.fixture
def blocks(tmp_path, monkeypatch):
    """Arguments of a run of sixteen blocks, of one plane each."""
    monkeypatch.setattr(correlation_plan, "_ELEMENTS_AT_ONCE", 1)
    stack = write_movie(tmp_path / "m.tif")
    return stack, stack, tmp_path / "p.npy", "--form", "n-to-m", "--max-shift", "5"


def written_by(monkeypatch, change):
    """The real file, each write of which goes through `change`."""
    real = batch_correlate.plane_writer

    @contextmanager
    def writer(*arguments):
        with real(*arguments) as write:
            yield lambda planes: change(write, planes)

    monkeypatch.setattr(batch_correlate, "plane_writer", writer)


@pytest.mark.parametrize("number", [0, 7, 15])
def test_a_block_that_cannot_be_written_ends_the_run(blocks, monkeypatch, number):
    seen = []

    def full(write, planes):
        seen.append(planes)
        if len(seen) == number + 1:
            raise OutputError("the disk is full")
        write(planes)

    written_by(monkeypatch, full)
    run = correlate(*blocks)
    assert run.code == 1
    assert "the disk is full" in run.stderr
    assert len(seen) <= number + 3
    assert {path.name for path in blocks[2].parent.iterdir()} == {"m.tif"}
