"""What `xcorr filter` writes, keeps and records; how a run is resumed."""

import numpy as np
import pytest
import tifffile
from scipy import ndimage

from tests.batch.filter_runs import assert_rounded, expected, filtering, result
from tests.batch.movies import movie, record
from tests.batch.test_bad_input import BROKEN
from tests.batch.test_layouts import hyperstack, write_pages
from tests.io.samples import write_imagej, write_ome, write_shaped
from xcorr_app.io import scan_file


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
