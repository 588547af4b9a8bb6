"""Values of `xcorr filter` by named filters, taps and banks; what it keeps and records; how a run is resumed."""

import numpy as np
import pytest
import tifffile
from scipy import ndimage

from tests.batch.filter_runs import NAMED, TAPS, assert_rounded, expected, filtering, result
from tests.batch.movies import movie, record, write_movie
from tests.batch.test_bad_input import BROKEN
from tests.batch.test_layouts import hyperstack, write_pages
from tests.io.samples import noise, write_imagej, write_ome, write_plain, write_shaped
from xcorr_app.batch.filter.choice import BANKS, FilterBank, parse_bank
from xcorr_app.batch.filter.options import FilterOptions
from xcorr_app.batch.filter.run import bank_metadata
from xcorr_app.io import StackMetadata, scan_file


def convolved(frame, **edge):
    return ndimage.convolve(frame, TAPS, **edge)


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


def maps(frame, filters, **edge):
    """Correlation with every filter, in float64."""
    return np.stack([ndimage.correlate(frame.astype(float), taps, **edge) for taps in filters])


def axes_of(path):
    with tifffile.TiffFile(path) as file:
        return file.series[0].axes


@pytest.mark.parametrize(
    ("text", "count"),
    [("gabor:8,4", 64), ("gabor:1,1", 2), ("derivatives:1,2.5", 10), ("schmid", 13), ("leung-malik", 48)],
)
def test_every_bank(text, count):
    bank = parse_bank(text)
    assert bank.filters.shape[0] == len(bank.names) == len(set(bank.names)) == count
    assert text.partition(":")[0] in BANKS


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
def test_a_plain_stack_gets_channels(tmp_path, dtype):
    frames = noise((3, 30, 34), dtype)
    write_plain(tmp_path / "m.tif", frames)
    run = filtering(tmp_path / "m.tif", "-o", tmp_path / "out", "--bank", "derivatives:1", "--border", "mirror")
    assert run.code == 0
    found, bank = result(tmp_path / "out"), parse_bank("derivatives:1")
    assert found.dtype == (np.float64 if dtype == "float64" else np.float32)
    assert found.shape == (3, 5, 30, 34)
    assert axes_of(tmp_path / "out" / "m" / "m_filtered.tif").endswith("CYX")
    exact = np.stack([maps(frame, bank.filters, mode="mirror") for frame in frames])
    np.testing.assert_allclose(found, exact, rtol=0, atol=2e-6 * 5 * np.abs(frames.astype(float)).max())
    facts = record(tmp_path / "out")["stacks"]["m"]
    assert facts["axes"] == "TCYX"
    assert facts["engine"] == "bank"


def test_a_bank_from_a_file_and_valid(tmp_path):
    frames, filters = noise((2, 20, 24), "float32"), np.random.default_rng(3).standard_normal((3, 4, 5))
    write_plain(tmp_path / "m.tif", frames)
    np.save(tmp_path / "my.npy", filters)
    options = ["--bank", tmp_path / "my.npy", "--border", "valid"]
    assert filtering(tmp_path / "m.tif", "-o", tmp_path / "out", *options).code == 0
    exact = np.stack([maps(frame, filters)[:, 2:-1, 2:-2] for frame in frames])
    np.testing.assert_allclose(result(tmp_path / "out"), exact, rtol=0, atol=1e-5 * np.abs(frames).max())
    assert str(tmp_path / "my.npy") in record(tmp_path / "out")["taps_file"]
    write_plain(tmp_path / "tiny.tif", noise((2, 3, 24)))
    small = filtering(tmp_path / "tiny.tif", "-o", tmp_path / "small", *options)
    assert small.code == 1
    assert "planes of 3 x 24 are smaller than the filter of 4 x 5" in small.stdout


@pytest.mark.parametrize("shape", [(3,), (0, 2, 2), (2, 2)])
def test_a_file_that_holds_no_bank(tmp_path, shape):
    np.save(tmp_path / "my.npy", np.zeros(shape))
    write_plain(tmp_path / "m.tif", noise((2, 9, 9)))
    run = filtering(tmp_path / "m.tif", "-o", tmp_path / "out", "--bank", tmp_path / "my.npy")
    assert run.code == 2
    assert "a bank is numbers of shape (filters, rows, columns)" in run.stderr


@pytest.mark.parametrize(("channels", "names", "expected"), [
    (1, (), ("a", "b")),
    (2, (), ("0 a", "0 b", "1 a", "1 b")),
    (2, ("red", "green"), ("red a", "red b", "green a", "green b")),
    (3, (), ("0 a", "0 b", "1 a", "1 b", "2 a", "2 b")),
])  # fmt: skip
def test_channels_of_a_result_say_which_channel_and_filter_they_are(channels, names, expected):
    bank = FilterBank(np.ones((2, 3, 5)), ("a", "b"))
    given = StackMetadata("TCYX", (4, channels, 20, 30), np.dtype(np.uint16), "ome", channel_names=names)
    found = bank_metadata(given, bank, FilterOptions(gaussian="1", border="valid"))
    assert found.channel_names == expected
    assert (found.axes, found.shape, found.dtype) == ("TCYX", (4, 2 * channels, 18, 26), np.float32)


def boxed(frames):
    return expected(frames.reshape(-1, *frames.shape[-2:]), lambda frame: ndimage.uniform_filter(frame, 3)).reshape(
        frames.shape
    )


@pytest.mark.parametrize("dtype", ["same", "float32"])
@pytest.mark.parametrize(("write", "axes"), [(write_ome, "TCZYX"), (write_imagej, "TZCYX"), (write_shaped, "TCZYX")])
def test_axes_calibration_and_channels_are_kept(tmp_path, write, axes, dtype):
    data = hyperstack() if axes == "TCZYX" else np.ascontiguousarray(hyperstack().transpose(0, 2, 1, 3, 4))
    write(tmp_path / "m.tif", data, axes)
    assert filtering(tmp_path / "m.tif", "-o", tmp_path / "out", "--box", "3", "--dtype", dtype).code == 0
    target = tmp_path / "out" / "m" / "m_filtered.tif"
    before, after = scan_file(tmp_path / "m.tif").metadata, scan_file(target).metadata
    assert after.dtype == (before.dtype if dtype == "same" else np.float32)
    for name in ("axes", "shape", "kind", "pixel_size", "unit", "z_step", "z_unit", "time_increment", "time_unit"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.channel_names == before.channel_names
    if write is not write_shaped:
        assert after.time_increment == 2.5
    # Read by tifffile alone, with the axes it finds.
    with tifffile.TiffFile(target) as tif:
        assert tif.series[0].axes == axes
        found = tif.series[0].asarray()
        assert (tif.is_ome, tif.is_imagej) == (write is write_ome, write is write_imagej)
    if dtype == "same":
        assert_rounded(found, boxed(data))
    else:
        np.testing.assert_allclose(found, boxed(data), rtol=2e-6)


def test_broken_frame_of_a_series_is_zero_and_named(tmp_path):
    folder = write_pages(tmp_path / "series", movie(dtype="uint8"))
    (folder / "t9.tif").write_bytes(BROKEN["cut-short"])
    options = ["--box", "3", "--border", "constant", "--cval", "90"]
    run = filtering(folder, "-o", tmp_path / "out", *options)
    assert run.code == 1
    found = result(tmp_path / "out", "series")
    assert not found[1].any()
    sound = movie(dtype="uint8")[[0, 2, 3]]
    edge = {"mode": "constant", "cval": 90}
    assert_rounded(found[[0, 2, 3]], expected(sound, lambda frame: ndimage.uniform_filter(frame, 3, **edge)))
    assert "plane 1 is unreadable and was written as zeros" in run.stdout
    unreadable = record(tmp_path / "out")["stacks"]["series"]["unreadable"]
    assert list(unreadable) == ["1"]
    assert "t9.tif" in unreadable["1"]
    again = filtering(folder, "-o", tmp_path / "out", *options, "--resume")
    assert "Finished before" not in again.stdout  # it may have been unreadable for a moment
    assert again.code == 1
    assert "plane 1 is unreadable" in again.stdout


def test_record_of_a_run(tmp_path, folder):
    (tmp_path / "taps.csv").write_text("1,2,1\n")
    options = ["--taps", tmp_path / "taps.csv", "--border", "constant", "--cval", "5"]
    assert filtering(folder, "-o", tmp_path / "out", *options).code == 0
    known = record(tmp_path / "out")
    assert known["program"] == "xcorr filter"
    assert known["parameters"] == {
        **dict.fromkeys(("gaussian", "box", "sobel", "log", "dog", "unsharp", "bank")),
        "laplacian": False,
        "taps": str(tmp_path / "taps.csv"),
        "border": "constant",
        "cval": 5.0,
        "dtype": None,
        "kernel": "auto",
        "kernel_options": [],
        "device": "cpu",
        "layout": "auto",
        "channel": None,
        "compression": None,
    }
    assert known["inputs"] == [str(folder)]
    assert any(name.startswith("opencv") for name in known["versions"])
    assert [len(sum_) for sum_ in known["taps_file"].values()] == [32]
    for name in "ab":
        facts = known["stacks"][name]
        assert [len(sum_) for sum_ in facts["inputs"].values()] == [32]
        assert facts["seconds"]["filter"] >= 0
        assert (facts["planes"], facts["shape"], facts["axes"]) == (4, [4, 40, 48], "TYX")
