"""What a run writes: the table, the moved stack, the record, the report; and what each option changes of it."""

import numpy as np
import pytest
import tifffile

from tests.batch.movies import DRIFT, align, applied, files, movie, record, shifts, table, write_movie, xcorr
from tests.io.samples import TYPES, write_imagej, write_ome
from xcorr_app import apply_shifts, assess, estimate_shifts

pytestmark = pytest.mark.usefixtures("short_report")

HEADER = (
    "frame,source,page,dy,dx,score,peak_ratio,fft_dy,fft_dx,difference,flags,sigma_y,sigma_x,"
    "applied_dy,applied_dx,remarks,significance"
)


@pytest.fixture
def stack(tmp_path):
    return write_movie(tmp_path / "in" / "m.tif")


def aligned(out, name="m"):
    return tifffile.imread(out / name / f"{name}_aligned.tif")


def test_table_has_exactly_these_columns_and_six_decimals(tmp_path, stack):
    assert align(stack, "-o", tmp_path / "out").code == 0
    text = (tmp_path / "out" / "m" / "shifts.csv").read_bytes().decode()
    lines = text.split("\n")
    assert lines[0] == HEADER
    assert len(lines) == 6
    assert lines[-1] == ""
    for number, line in enumerate(lines[1:-1]):
        fields = line.split(",")
        assert fields[:3] == [str(number), "m.tif", str(number)]
        assert all(len(fields[i].partition(".")[2]) == 6 for i in (3, 4, 5, 7, 8, 9, 13, 14))
        assert fields[13:15] == fields[3:5]
        assert fields[10] == ""
        assert float(fields[5]) > 0.99
        assert float(fields[9]) < 0.01


@pytest.mark.parametrize("dtype", TYPES)
def test_moved_stack_is_the_shifts_of_the_table_applied(tmp_path, dtype):
    path = write_movie(tmp_path / "m.tif", dtype=dtype)
    assert align(path, "-o", tmp_path / "out").code == 0
    moved = aligned(tmp_path / "out")
    assert moved.dtype == np.dtype(dtype)
    expected = apply_shifts(movie(dtype=dtype), shifts(tmp_path / "out" / "m" / "shifts.csv"))
    np.testing.assert_array_equal(moved, expected)
    np.testing.assert_array_equal(moved[0], movie(dtype=dtype)[0])


def test_border_nearest_and_crop(tmp_path, stack):
    assert align(stack, "-o", tmp_path / "constant").code == 0
    found = shifts(tmp_path / "constant" / "m" / "shifts.csv")
    assert (aligned(tmp_path / "constant") == 0).any()
    for border in ("nearest", "mirror"):
        assert align(stack, "-o", tmp_path / border, "--border", border).code == 0
        np.testing.assert_array_equal(aligned(tmp_path / border), apply_shifts(movie(), found, border=border))
    run = align(stack, "-o", tmp_path / "crop", "--border", "crop")
    assert run.code == 0
    # Rows and columns that every frame covers once it is moved: from the largest shift to the smallest.
    top, left = np.ceil(found.max(axis=0).round(4)).astype(int)
    bottom, right = np.floor(found.min(axis=0).round(4)).astype(int)
    whole = apply_shifts(movie(), found)
    np.testing.assert_array_equal(aligned(tmp_path / "crop"), whole[:, top : 40 + bottom, left : 48 + right])
    assert f"Cropped to rows {top}:{40 + bottom} and columns {left}:{48 + right}" in run.stdout


@pytest.mark.parametrize("report", ["none", "quick"])
def test_a_report_of_less_changes_nothing_else(tmp_path, stack, report):
    assert align(stack, "-o", tmp_path / "full").code == 0
    for apply in ("--apply", "--no-apply"):
        out = tmp_path / apply
        run = align(stack, "-o", out, "--report", report, apply)
        assert run.code == 0
        expected = {"m/shifts.csv", "run.json"} | ({"report.html"} if report == "quick" else set())
        assert files(out) == expected | ({"m/m_aligned.tif"} if apply == "--apply" else set())
        assert ("Report:" in run.stdout) == (report == "quick")
        assert not list((out / ".xcorr").glob("*.npz"))
        for name in ("m/shifts.csv", *(["m/m_aligned.tif"] if apply == "--apply" else [])):
            assert (out / name).read_bytes() == (tmp_path / "full" / name).read_bytes()
        assert align(stack, "-o", out, "--report", report, apply, "--resume").stdout.count("Finished before: m") == 1
    assert align(stack, "-o", tmp_path / "full", "--report", "none", "--resume").code == 2
    assert align(stack, "-o", tmp_path / "full", "--report", "none", "--overwrite").code == 0
    assert not (tmp_path / "full" / "report.html").exists()


@pytest.mark.parametrize("compression", ["zlib", "zstd", "lzw"])
def test_compression_changes_the_file_and_not_the_planes(tmp_path, stack, compression):
    assert align(stack, "-o", tmp_path / "plain").code == 0
    assert align(stack, "-o", tmp_path / "out", "--compression", compression).code == 0
    np.testing.assert_array_equal(aligned(tmp_path / "out"), aligned(tmp_path / "plain"))
    assert record(tmp_path / "out")["parameters"]["compression"] == compression
    sizes = [(tmp_path / out / "m" / "m_aligned.tif").stat().st_size for out in ("out", "plain")]
    assert sizes[0] < sizes[1]
    # What another compression wrote is not what is asked for.
    assert align(stack, "-o", tmp_path / "out", "--resume").code == 2
    for command in ("align", "filter"):
        how = (stack, "--device", "cpu", "-o", tmp_path / command, *(("--box", "3") if command == "filter" else ()))
        assert xcorr(command, *how).code == 0
        run = xcorr(command, *how, "--resume", "--compression", compression)
        assert run.code == 2
        assert f'holds a run with compression unset, not "{compression}"' in " ".join(run.stderr.split())


def test_calibration_and_channel_names_are_kept(tmp_path):
    data = np.stack([movie(), movie(seed=3)], axis=1)
    write_ome(tmp_path / "o.ome.tif", data, "TCYX")
    assert align(tmp_path / "o.ome.tif", "-o", tmp_path / "out").code == 0
    with tifffile.TiffFile(tmp_path / "out" / "o" / "o_aligned.tif") as tif:
        pixels = tifffile.xml2dict(tif.ome_metadata)["OME"]["Image"]["Pixels"]
    assert (pixels["PhysicalSizeX"], pixels["PhysicalSizeY"], pixels["TimeIncrement"]) == (0.325, 0.65, 2.5)
    assert [channel["Name"] for channel in pixels["Channel"]] == ["dye 0", "dye 1"]
    write_imagej(tmp_path / "i.tif", data, "TCYX")
    assert align(tmp_path / "i.tif", "-o", tmp_path / "out2").code == 0
    with tifffile.TiffFile(tmp_path / "out2" / "i" / "i_aligned.tif") as tif:
        assert tif.imagej_metadata["finterval"] == 2.5
        assert tif.pages[0].tags["XResolution"].value == (4, 1)


def test_roi_and_prefilter_change_the_measurement_only(tmp_path):
    frames = movie()
    frames[:, :16, :] = movie(seed=9)[0][:16]  # the upper part stands still
    path = tmp_path / "m.tif"
    tifffile.imwrite(path, frames, photometric="minisblack")
    options = ["--roi", "16:,4:44", "--prefilter", "gaussian:1", "--max-shift", 5]
    assert align(path, "-o", tmp_path / "out", *options).code == 0
    found = shifts(tmp_path / "out" / "m" / "shifts.csv")
    np.testing.assert_allclose(found, DRIFT, atol=0.1)
    np.testing.assert_array_equal(aligned(tmp_path / "out"), apply_shifts(frames, found))
    parameters = record(tmp_path / "out")["parameters"]
    assert (parameters["roi"], parameters["prefilter"]) == ([[16, None], [4, 44]], "gaussian:1")


@pytest.mark.parametrize(("reference", "origin"), [("first", 0), ("last", 3), ("2", 2), ("-2", 2), ("previous", 0)])
def test_reference_frame_stays_and_others_land_on_it(tmp_path, stack, reference, origin):
    assert align(stack, "-o", tmp_path / "out", "--reference", reference).code == 0
    expected = np.subtract(DRIFT, DRIFT[origin])
    np.testing.assert_allclose(shifts(tmp_path / "out" / "m" / "shifts.csv"), expected, atol=0.05)


def test_reference_file(tmp_path, stack):
    reference = write_movie(tmp_path / "still.tif", drift=((1, 1),))
    assert align(stack, "-o", tmp_path / "out", "--reference", reference).code == 0
    expected = np.subtract(DRIFT, (1, 1))
    np.testing.assert_allclose(shifts(tmp_path / "out" / "m" / "shifts.csv"), expected, atol=0.05)
    assert list(record(tmp_path / "out")["reference_file"]) == [str(reference)]


@pytest.fixture
def doubtful(tmp_path):
    """A movie whose third frame moved farther than the window of `NEAR`, which is flagged `edge`."""
    frames = movie()
    frames[2] = movie(drift=((-8, 0),))[0]
    path = tmp_path / "in" / "m.tif"
    path.parent.mkdir(exist_ok=True)
    tifffile.imwrite(path, frames, photometric="minisblack")
    return path


NEAR = ("--max-shift", "5")


def test_a_doubtful_frame_is_moved_by_what_lies_between_its_neighbours(tmp_path, doubtful):
    run = align(doubtful, "-o", tmp_path / "out", *NEAR, "-v")
    assert run.code == 0
    assert table(tmp_path / "out" / "m" / "shifts.csv")[2]["flags"].startswith("edge")
    measured, moves = shifts(tmp_path / "out" / "m" / "shifts.csv"), applied(tmp_path / "out")
    np.testing.assert_allclose(moves[2], (measured[1] + measured[3]) / 2, atol=2e-6)
    np.testing.assert_array_equal(moves[[0, 1, 3]], measured[[0, 1, 3]])
    assert np.abs(moves - measured)[2].max() > 2
    np.testing.assert_array_equal(aligned(tmp_path / "out"), apply_shifts(tifffile.imread(doubtful), moves))
    assert "1 frame without a shift that can be trusted (2): moved by what is expected to be least" in run.stdout
    assert f"{moves[2, 0]:.3f}" in run.stdout
    assert record(tmp_path / "out")["parameters"]["doubtful"] == "interpolate"


@pytest.mark.parametrize("resume", [(), ("--resume",)])
def test_a_stack_of_which_most_could_not_be_trusted_failed(tmp_path, resume):
    path = write_movie(tmp_path / "m.tif", drift=((0, 0), (8, 0), (-8, 0), (0, 8)))
    arguments = (path, "-o", tmp_path / "out", *NEAR)
    run = align(*arguments)
    if resume:
        run = align(*arguments, *resume)
        assert "Finished before: m" in run.stdout
    assert run.code == 1
    assert "m: failed: 3 of 3 frames could not be trusted; no frame was moved, so after equals before" in run.stdout
    np.testing.assert_array_equal(aligned(tmp_path / "out"), tifffile.imread(path))
    assert record(tmp_path / "out")["failed"]


@pytest.mark.parametrize("resume", [False, True])
def test_how_good_the_result_is_stands_in_the_record_and_in_the_table(tmp_path, stack, resume):
    run = align(stack, "-o", tmp_path / "out")
    if resume:
        run = align(stack, "-o", tmp_path / "out", "--resume")
    found = record(tmp_path / "out")["stacks"]["m"]["assessment"]
    expected = assess(movie(), aligned(tmp_path / "out"), estimate_shifts(movie())).as_record()
    for name in ("correlation", "crispness", "residual_shift"):
        for side in ("before", "after"):
            assert found[name][side] == pytest.approx(expected[name][side], abs=2e-3)
    assert (found["corrected"], found["sampled"], found["registered_again"]) == (1.0, 2, 2)
    assert f"{found['correlation']['before']:.3f} > {found['correlation']['after']:.3f}" in run.stdout
    assert f"{found['crispness']['before']:.3f} > {found['crispness']['after']:.3f}" in run.stdout


def test_what_a_frame_does_not_show_is_no_scene_under_a_mask_that_moves(tmp_path):
    frames, mask = movie(), np.ones(movie().shape[1:], np.uint8)
    mask[:9, :9] = 0
    tifffile.imwrite(tmp_path / "m.tif", frames, photometric="minisblack")
    tifffile.imwrite(tmp_path / "mask.tif", mask)
    assert align(tmp_path / "m.tif", "-o", tmp_path / "out", "--mask", f"moving:{tmp_path / 'mask.tif'}").code == 0
    assert record(tmp_path / "out")["stacks"]["m"]["assessment"]["correlation"]["after"] > 0.95
