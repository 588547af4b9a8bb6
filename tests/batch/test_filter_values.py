"""What ``xcorr filter`` writes, read back and compared with ``scipy.ndimage`` in float64."""

import numpy as np
import pytest
from scipy import ndimage

from tests.batch.filter_runs import NAMED, TAPS, assert_rounded, expected, filtering, result
from tests.batch.movies import movie, record, write_movie
from tests.io.samples import noise, write_plain


def convolved(frame, **edge):
    return ndimage.convolve(frame, TAPS, **edge)


@pytest.mark.parametrize("chosen", NAMED, ids=" ".join)
def test_every_named_filter(tmp_path, chosen):
    run = filtering(write_movie(tmp_path / "m.tif", dtype="float32"), "-o", tmp_path / "out", *chosen)
    assert run.code == 0
    exact = expected(movie(dtype="float32"), NAMED[chosen])
    found = result(tmp_path / "out")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact, rtol=0, atol=2e-6 * 16 * 3000)
    assert np.ptp(exact) > 100


@pytest.mark.parametrize("chosen", NAMED, ids=" ".join)
def test_integers_are_rounded_and_clipped_and_counted(tmp_path, chosen):
    frames = noise((3, 31, 33), "uint8", seed=3)
    write_plain(tmp_path / "m.tif", frames)
    assert filtering(tmp_path / "m.tif", "-o", tmp_path / "out", "--dtype", "same", *chosen).code == 0
    clipped = assert_rounded(result(tmp_path / "out"), expected(frames, NAMED[chosen]))
    counted = record(tmp_path / "out")["stacks"]["m"]["clipped_pixels"]
    assert counted == pytest.approx(clipped, abs=5)
    assert (clipped > 100) == (chosen[0] not in ("--gaussian", "--box"))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32", "float64"])
@pytest.mark.parametrize("wanted", ["same", "float32"])
def test_type_of_the_result(tmp_path, dtype, wanted):
    frames = noise((2, 20, 24), dtype)
    write_plain(tmp_path / "m.tif", frames)
    run = filtering(tmp_path / "m.tif", "-o", tmp_path / "out", "--laplacian", "--dtype", wanted)
    assert run.code == 0
    exact = expected(frames, ndimage.laplace)
    found = result(tmp_path / "out")
    assert found.dtype == np.dtype(dtype if wanted == "same" else wanted)
    facts = record(tmp_path / "out")["stacks"]["m"]
    assert facts["dtype"] == found.dtype.name
    if found.dtype.kind == "f":
        tolerance = 1e-12 if found.dtype == np.float64 else 2e-6
        np.testing.assert_allclose(found, exact, rtol=0, atol=tolerance * 8 * np.abs(frames.astype(float)).max())
        assert facts["clipped_pixels"] == 0
    else:
        assert facts["clipped_pixels"] == pytest.approx(assert_rounded(found, exact), abs=5)
        assert facts["clipped_pixels"] > 0
        assert f"{facts['clipped_pixels']} of the pixels did not fit {dtype}" in run.stdout


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("taps.csv", "1,2,0.5\n0,-1,0.25\n"),
        ("taps.csv", "\ufeff# weights\r\n1; 2; 5e-1\r\n\r\n 0;-1;.25\r\n"),
        ("taps.txt", "1 2  0.5\n0   -1 0.25"),
    ],
)
def test_taps_from_text(tmp_path, name, text):
    (tmp_path / name).write_bytes(text.encode())
    path = write_movie(tmp_path / "m.tif", dtype="float32")
    assert filtering(path, "-o", tmp_path / "out", "--taps", tmp_path / name).code == 0
    exact = expected(movie(dtype="float32"), convolved)
    np.testing.assert_allclose(result(tmp_path / "out"), exact, rtol=0, atol=2e-6 * 5 * 3000)


def test_nan_stays_where_the_filter_meets_it(tmp_path):
    frames = movie(dtype="float32")
    frames[1, 20, 30] = np.nan
    write_plain(tmp_path / "m.tif", frames)
    run = filtering(tmp_path / "m.tif", "-o", tmp_path / "out", "--box", "3")
    assert run.code == 0
    missing = np.zeros(frames.shape, bool)
    missing[1, 19:22, 29:32] = True
    np.testing.assert_array_equal(np.isnan(result(tmp_path / "out")), missing)
    assert "9 of the pixels are NaN or infinite" in run.stdout
    assert record(tmp_path / "out")["stacks"]["m"]["non_finite_pixels"] == 9
