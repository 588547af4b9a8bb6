"""What `xcorr correlate` refuses, what fails on the way, and what is left of it."""

import os
from contextlib import contextmanager

import numpy as np
import pytest

from tests.batch.movies import movie, refused, write_movie
from tests.cli.planes import correlate
from xcorr_app.batch.correlate import plan as correlation_plan
from xcorr_app.batch.correlate import run as batch_correlate
from xcorr_app.errors import OutputError


def test_an_output_that_exists(tmp_path, stack):
    arguments = (stack, stack, tmp_path / "p.tif", "--form", "n-to-m", "--max-shift", "2")
    (tmp_path / "p.tif").write_bytes(b"mine")
    refused(correlate(*arguments), "p.tif: exists; use --overwrite")
    assert (tmp_path / "p.tif").read_bytes() == b"mine"
    assert correlate(*arguments, "--overwrite").code == 0
    assert (tmp_path / "p.tif").stat().st_size > 1000


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
def test_an_output_that_is_an_input(tmp_path, stack, link):
    before = stack.read_bytes()
    out = stack
    if link is not None:
        out = tmp_path / "linked.tif"
        link(stack, out)
    refused(correlate(stack, stack, out, "--form", "n-to-m", "--overwrite"), "is an input")
    assert stack.read_bytes() == before


def test_debug_shows_where(tmp_path, stack):
    with pytest.raises(OSError, match="cannot be read"):
        correlate(stack, tmp_path / "nowhere", tmp_path / "p.npy", "--debug")


def test_memory_that_does_not_suffice(tmp_path, monkeypatch):
    stack = write_movie(tmp_path / "m.tif")

    def exhausted(*_arguments, **_options):
        raise MemoryError

    monkeypatch.setattr(batch_correlate, "cross_correlate", exhausted)
    run = correlate(stack, stack, tmp_path / "p.npy", "--form", "n-to-m")
    assert run.code == 1
    assert "limit the shifts with --max-shift" in run.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"m.tif"}


@pytest.mark.parametrize(("dtype", "size"), [("float32", 1e25), ("float64", 1e200)])
def test_plain_sums_beyond_their_type(tmp_path, dtype, size):
    np.save(tmp_path / "m.npy", (movie()[0] * size).astype(dtype))
    arguments = (tmp_path / "m.npy", tmp_path / "m.npy", tmp_path / "p.npy")
    run = correlate(*arguments, "--normalization", "none", "-q")
    assert run.code == 1
    assert len(run.lines_of_error) == 1
    assert f"do not fit {dtype}" in run.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"m.npy"}
    assert correlate(*arguments, "-q").code == 0


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
