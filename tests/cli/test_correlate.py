"""`xcorr correlate`: planes and peaks of every form, in files that say where they lie."""

import json
from dataclasses import asdict

import numpy as np
import pytest
import tifffile

from tests.batch.movies import DRIFT, movie, table, write_movie, xcorr
from tests.cli.planes import correlate, rows_of, write_operand
from tests.correlation import plain
from tests.io.samples import write_plain
from xcorr_app import KernelOptions, ShiftWindow, __version__, find_shifts
from xcorr_app.batch.correlate import plan as correlation_plan
from xcorr_app.batch.correlate.run import PlaneRecord
from xcorr_app.correlation.engines.definition import correlate_by_definition
from xcorr_app.correlation.forms import FORMS

WINDOW = ShiftWindow(-3, 3, -5, 5)


def small_operands(rng, form):
    return plain.operands(form, (12, 15), (9, 16), lambda shape: rng.integers(1, 9, shape).astype(np.uint8))


@pytest.mark.parametrize("ending", [".tif", ".npy"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("normalization", ["none", "zncc"])
def test_planes_of_every_form_are_the_definition(tmp_path, rng, form, normalization, ending):
    left, right = small_operands(rng, form)
    files = write_operand(tmp_path / f"left{ending}", left), write_operand(tmp_path / f"right{ending}", right)
    options = ("--form", form, "--max-shift", "3,5", "--normalization", normalization, "--min-overlap", "0.6")
    of_pair = {
        "none": lambda f, g: correlate_by_definition(f, g, WINDOW),
        "zncc": lambda f, g: plain.zncc(f, g, WINDOW, 0.6),
    }[normalization]
    expected = plain.every_pair(left, right, form, of_pair)

    assert correlate(*files, tmp_path / "p.npy", *options).code == 0
    found = np.load(tmp_path / "p.npy")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)

    assert correlate(*files, tmp_path / "p.tif", *options).code == 0
    stored = tifffile.imread(tmp_path / "p.tif")
    assert stored.dtype == np.float32
    np.testing.assert_array_equal(stored.reshape(found.shape), found)


@pytest.mark.parametrize("form", ["n-to-m", "n-to-mn"])
@pytest.mark.parametrize("elements", [1, 1500, 4000])
def test_blocks_make_no_difference(tmp_path, rng, monkeypatch, form, elements):
    files = [
        write_operand(tmp_path / f"{i}.npy", operand.reshape(-1, *operand.shape[-2:]))
        for i, operand in enumerate(small_operands(rng, form))
    ]
    options = ("--form", form, "--engine", "definition")
    whole = correlate(*files, tmp_path / "whole.npy", *options)
    monkeypatch.setattr(correlation_plan, "_ELEMENTS_AT_ONCE", elements)
    parts = correlate(*files, tmp_path / "parts.npy", *options)
    assert (tmp_path / "parts.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()
    numbers = [row[:6] for row in rows_of(parts)]
    assert numbers == [row[:6] for row in rows_of(whole)]
    pairs = [(n, m if form == "n-to-m" else 2 * n + m) for n in range(3) for m in range(2)]
    assert [(int(row[0]), int(row[1])) for row in numbers] == pairs


def test_tiff_says_where_the_zero_shift_is(tmp_path, rng):
    left, right = small_operands(rng, "one-to-many")
    files = write_operand(tmp_path / "l.tif", left), write_operand(tmp_path / "r.tif", right)
    assert correlate(*files, tmp_path / "p.tif", "--form", "one-to-many").code == 0
    with tifffile.TiffFile(tmp_path / "p.tif") as tif:
        facts = json.loads(tif.imagej_metadata["xcorr"])
    assert (facts["dy_min"], facts["dy_max"], facts["dx_min"], facts["dx_max"]) == (-8, 11, -15, 14)
    assert facts["shape"] == [2, 20, 30]
    assert (facts["form"], facts["normalization"], facts["engine"]) == ("one-to-many", "zncc", "fft")
    assert facts["kernel_options"] is None
    assert facts["versions"]["xcorr-app"] == __version__


@pytest.mark.gpu
@pytest.mark.parametrize("form", FORMS)
def test_the_kernels_write_the_definition(tmp_path, rng, form):
    left, right = small_operands(rng, form)
    files = write_operand(tmp_path / "l.npy", left), write_operand(tmp_path / "r.npy", right)
    options = ("--form", form, "--max-shift", "3,5", "--normalization", "none", "--engine", "direct")
    run = xcorr("correlate", *files, "-o", tmp_path / "p.npy", "--device", "cuda", *options)
    assert run.code == 0
    assert "engine direct" in run.stdout
    planes = np.load(tmp_path / "p.npy")
    expected = plain.every_pair(left, right, form, lambda f, g: correlate_by_definition(f, g, WINDOW))
    np.testing.assert_array_equal(planes, expected)


@pytest.mark.gpu
def test_the_variant_asked_for_is_the_one_that_runs(tmp_path, rng):
    files = [write_operand(tmp_path / f"{i}.npy", side) for i, side in enumerate(small_operands(rng, "one-to-many"))]
    options = ("--form", "one-to-many", "--device", "cuda", "--kernel-option", "variant=multi-right")
    options += ("--kernel-option", "rights=2")
    assert xcorr("correlate", *files, "-o", tmp_path / "p.tif", *options).code == 0
    with tifffile.TiffFile(tmp_path / "p.tif") as tif:
        facts = json.loads(tif.imagej_metadata["xcorr"])
    asked = KernelOptions("multi-right", rights=2)
    assert (facts["engine"], facts["kernel_options"]) == ("direct", asdict(asked))


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
    assert run.stdout.splitlines()[-1] == f"Peaks: {out}"
    rows = table(out)
    assert tuple(rows[0]) == PlaneRecord._fields
    assert [(int(row["peak_dy"]), int(row["peak_dx"])) for row in rows] == list(DRIFT)
    np.testing.assert_allclose([(float(row["dy"]), float(row["dx"])) for row in rows], DRIFT, atol=0.02)
    assert all(float(row["ratio"]) > 1 for row in rows)
    assert [path.name for path in tmp_path.iterdir() if path.suffix not in (".tif", ".csv")] == []


@pytest.mark.parametrize("normalization", ["zncc", "none", "phase"])
@pytest.mark.parametrize("form", FORMS)
def test_arrays_of_every_form(tmp_path, rng, form, normalization):
    if normalization == "phase":
        left, right = plain.operands(form, (30, 33), (30, 33), lambda shape: rng.integers(1, 99, shape))
        files = write_operand(tmp_path / "l.npy", left), write_operand(tmp_path / "r.npy", right)
    else:
        (left, right), files = files_of(tmp_path, rng, form)
    out = tmp_path / "peaks.csv"
    how = ("--form", form, "--normalization", normalization, "--max-shift", "4,5", "--peaks")
    assert correlate(*files, out, *how).code == 0
    expected = find_shifts(left, right, form, (4, 5), normalization=normalization).flat()
    columns = np.array([[*map(float, list(row.values())[2:9])] for row in table(out)])
    known = (expected.shift, expected.value, expected.ratio, expected.peak, expected.on_edge)
    np.testing.assert_allclose(columns, np.column_stack(known), rtol=1e-6, atol=1e-6)


def test_a_pair_without_a_peak_is_told(tmp_path, rng):
    left = rng.integers(1, 99, (20, 20)).astype(np.uint8)
    files = write_operand(tmp_path / "l.npy", left), write_operand(tmp_path / "r.npy", np.stack([left, left * 0 + 7]))
    run = correlate(*files, tmp_path / "p.csv", "--form", "one-to-many", "--peaks")
    assert run.code == 1
    good, bad = table(tmp_path / "p.csv")
    assert (good["peak_dy"], good["peak_dx"], good["problem"]) == ("0", "0", "")
    assert [bad[name] for name in ("dy", "dx", "score", "ratio", "peak_dy")] == [""] * 5
    assert "no valid shift" in bad["problem"]
    assert "every overlap is constant in one image" in run.stdout
