"""``xcorr correlate --peaks``: the table on the terminal and in the file is that of the planes; none is written."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.batch.movies import DRIFT, movie, table, write_movie
from tests.cli.planes import correlate, rows_of, write_operand
from tests.correlation import plain
from tests.io.samples import write_plain
from xcorr_app import find_shifts
from xcorr_app.batch.correlate.run import PlaneRecord
from xcorr_app.correlation.forms import FORMS


def files_of(tmp_path, rng, form):
    left, right = plain.operands(form, (32, 35), (29, 36), lambda shape: rng.integers(1, 99, shape).astype(np.uint8))
    return (left, right), (write_operand(tmp_path / "l.npy", left), write_operand(tmp_path / "r.npy", right))


def test_the_drift_of_a_movie(tmp_path):
    stack = write_movie(tmp_path / "movie.tif")
    write_plain(tmp_path / "first.tif", movie()[:1])
    out = tmp_path / "peaks.csv"
    how = ("--form", "one-to-many", "--max-shift", "8", "--peaks")
    run = correlate(tmp_path / "first.tif", stack, out, *how)
    assert run.code == 0
    assert run.stderr == ""
    rows = rows_of(run)
    assert [tuple(map(int, row[2:4])) for row in rows] == list(DRIFT)
    assert "score" in run.stdout
    assert "ratio" in run.stdout
    assert "4 planes checked against the float64 FFT" in run.stdout
    assert run.stdout.splitlines()[-1] == f"Peaks: {out}"
    rows = table(out)
    assert tuple(rows[0]) == PlaneRecord._fields
    assert [(int(row["peak_dy"]), int(row["peak_dx"])) for row in rows] == list(DRIFT)
    np.testing.assert_allclose([(float(row["dy"]), float(row["dx"])) for row in rows], DRIFT, atol=0.02)
    assert all(float(row["ratio"]) > 1 and float(row["difference_px"]) < 1e-3 for row in rows)
    assert [path.name for path in tmp_path.iterdir() if path.suffix not in (".tif", ".csv")] == []


@pytest.mark.parametrize("verify", ["--verify", "--no-verify"])
@pytest.mark.parametrize("normalization", ["zncc", "none", "phase"])
@pytest.mark.parametrize("form", FORMS)
def test_arrays_of_every_form(tmp_path, rng, form, normalization, verify):
    if normalization == "phase":
        left, right = plain.operands(form, (30, 33), (30, 33), lambda shape: rng.integers(1, 99, shape))
        files = write_operand(tmp_path / "l.npy", left), write_operand(tmp_path / "r.npy", right)
    else:
        (left, right), files = files_of(tmp_path, rng, form)
    out = tmp_path / "peaks.npz"
    how = ("--form", form, "--normalization", normalization, "--max-shift", "4,5", "--peaks", verify)
    assert correlate(*files, out, *how).code == 0
    expected = find_shifts(left, right, form, (4, 5), normalization=normalization)
    with np.load(out) as arrays:
        for name in ("shift", "score", "ratio", "peak", "on_edge"):
            assert arrays[name].shape == getattr(expected, name).shape
            np.testing.assert_allclose(arrays[name], getattr(expected, name), rtol=1e-6, atol=1e-6)
        facts = json.loads(str(arrays["facts"]))
    assert (facts["form"], facts["normalization"], facts["dy_min"], facts["dx_max"]) == (form, normalization, -4, 5)


def test_a_pair_without_a_peak_is_told(tmp_path, rng):
    left = rng.integers(1, 99, (20, 20)).astype(np.uint8)
    files = write_operand(tmp_path / "l.npy", left), write_operand(tmp_path / "r.npy", np.stack([left, left * 0 + 7]))
    run = correlate(*files, tmp_path / "p.csv", "--form", "one-to-many", "--peaks")
    assert run.code == 1
    good, bad = table(tmp_path / "p.csv")
    assert (good["peak_dy"], good["peak_dx"], good["problem"]) == ("0", "0", "")
    assert [bad[name] for name in ("dy", "dx", "score", "ratio", "peak_dy")] == [""] * 5
    assert "no valid shift" in bad["problem"]


@pytest.mark.parametrize(
    ("out", "words", "message"),
    [
        ("p.npy", ("--peaks",), "peaks are written as .csv or .npz"),
        ("p.tif", ("--peaks",), "peaks are written as .csv or .npz"),
        ("p.csv", (), "planes are written as .tif"),
        ("p.csv", ("--peaks", "--kernel-option", "variant=combined"), "'direct' cannot run on numpy arrays"),
    ],
)
def test_wrong_usage(tmp_path, rng, out, words, message):
    _, files = files_of(tmp_path, rng, "one-to-one")
    run = correlate(*files, tmp_path / out, *words)
    assert run.code == 2
    assert message in run.stderr
    assert not (tmp_path / out).exists()
