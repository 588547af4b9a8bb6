"""Planes that ``xcorr correlate`` counts as failed: told by name, and in the exit code."""

from __future__ import annotations

import numpy as np
import pytest

from tests.batch.movies import movie, write_movie
from tests.cli.planes import correlate, rows_of
from tests.io.samples import write_plain
from xcorr_app.batch.correlate import run as batch_correlate
from xcorr_app.correlation.engines.definition import DefinitionCorrelator


def with_second_plane(change):
    """The definition's sums, the second plane spoilt."""
    honest = DefinitionCorrelator.sums

    def sums(self, left, right):
        planes = honest(self, left, right)
        planes[0, 1] = change(planes[0, 1])
        return planes

    return sums


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda plane: np.roll(plane, 1, axis=1), "px from the FFT reference's, more than --tolerance 0.01"),
        (lambda plane: plane * 1.01, "differs by 0.01 of its height at the peak"),
        (lambda plane: plane * np.nan, "has no valid shift, the FFT reference has"),
    ],
    ids=["moved", "scaled", "nan"],
)
def test_a_wrong_engine_is_told_and_fails(tmp_path, monkeypatch, change, words):
    stack = write_movie(tmp_path / "movie.tif")
    write_plain(tmp_path / "first.tif", movie()[:1])
    arguments = (tmp_path / "first.tif", stack, tmp_path / "p.npy", "--form", "one-to-many", "--max-shift", "5")
    arguments += ("--engine", "definition", "--normalization", "none", "--overwrite")
    right = correlate(*arguments)
    assert right.code == 0

    monkeypatch.setattr(DefinitionCorrelator, "sums", with_second_plane(change))
    wrong = correlate(*arguments)
    assert wrong.code == 1
    said = [line for line in wrong.stdout.splitlines() if line.startswith("left 0, right")]
    assert len(said) == 1
    assert said[0].startswith("left 0, right 1: ")
    assert words in said[0]
    assert "1 of 4 planes failed." in wrong.stdout
    assert (tmp_path / "p.npy").exists()
    # A plane without any peak is a failure by itself; the others need the comparison.
    unchecked = correlate(*arguments, "--no-verify")
    assert unchecked.code == (1 if "no valid shift" in words else 0)
    if unchecked.code == 0:
        assert "4 planes, not checked against the FFT." in unchecked.stdout


def test_a_flat_image_has_no_peak(tmp_path):
    stack = movie()
    stack[2] = 7
    write_plain(tmp_path / "m.tif", stack)
    write_plain(tmp_path / "first.tif", stack[:1])
    run = correlate(tmp_path / "first.tif", tmp_path / "m.tif", tmp_path / "p.npy", "--form", "one-to-many")
    assert run.code == 1
    assert "left 0, right 2: has no valid shift: every overlap is constant in one image" in run.stdout
    assert rows_of(run)[2][2:] == ["no", "peak"]
    assert np.isnan(np.load(tmp_path / "p.npy")[2]).all()


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
