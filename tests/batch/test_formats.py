"""Every command on the kinds of file that people have."""

import json

import imagecodecs
import numpy as np
import pytest
import tifffile

from tests.batch.movies import DRIFT, align, files, movie, record, refused, shifts, write_movie, xcorr
from tests.io.samples import write_plain
from xcorr_app.batch.align import run as align_run

pytestmark = pytest.mark.usefixtures("short_report")


def colours(dtype="uint8"):
    """A movie whose green channel drifts; red is still, blue is noise."""
    green = movie(dtype=dtype)
    blue = np.random.default_rng(5).integers(0, 200, green.shape).astype(dtype)
    return np.stack([np.broadcast_to(green[0], green.shape), green, blue], -1)


def save_frames(folder, kind, frames):
    folder.mkdir()
    for t, frame in enumerate(frames):
        path = folder / f"i{t}.{kind}"
        if kind == "npy":
            np.save(path, frame)
        else:
            encode = {"bmp": imagecodecs.bmp_encode, "jpg": imagecodecs.jpeg8_encode, "png": imagecodecs.png_encode}
            how = {"level": 95} if kind == "jpg" else {}
            path.write_bytes(encode[kind](np.ascontiguousarray(frame), **how))
    return folder


@pytest.mark.parametrize("kind", ["bmp", "jpg", "npy"])
def test_align_and_filter_read_it(tmp_path, kind):
    folder = save_frames(tmp_path / "in", kind, movie(dtype="uint8"))
    assert align(folder, "-o", tmp_path / "out").code == 0
    np.testing.assert_allclose(shifts(tmp_path / "out" / "in" / "shifts.csv"), DRIFT, atol=0.05)
    assert xcorr("filter", folder, "-o", tmp_path / "f", "--gaussian", 1, "--device", "cpu").code == 0
    assert tifffile.imread(tmp_path / "f" / "in" / "in_filtered.tif").shape == (4, 40, 48)


@pytest.mark.parametrize("kind", ["bmp", "jpg", "png", "npy"])
@pytest.mark.parametrize(("channel", "drift"), [("G", DRIFT), ("R", ((0, 0),) * 4)])
def test_a_colour_is_aligned_and_written_alone(tmp_path, kind, channel, drift):
    folder = save_frames(tmp_path / "in", kind, colours())
    assert align(folder, "-o", tmp_path / "out", "--channel", channel).code == 0
    tolerance = 0.25 if kind == "jpg" else 0.05  # JPEG stores colours at half the resolution
    np.testing.assert_allclose(shifts(tmp_path / "out" / "in" / "shifts.csv"), drift, atol=tolerance)
    moved = tifffile.imread(tmp_path / "out" / "in" / "in_aligned.tif")
    assert (moved.shape, moved.dtype) == ((4, 40, 48), np.uint8)
    assert record(tmp_path / "out")["parameters"]["channel"] == channel


def numbered(folder, pattern="a_t{t}_c{c}", numbers=range(4), **other):
    """Two channels in files of their own; the second one does not drift."""
    folder.mkdir()
    data = movie()
    for index, t in enumerate(numbers):
        for c in range(2):
            write_plain(folder / f"{pattern.format(t=t, c=c, **other)}.tif", data[index if c == 0 else 0])
    return folder


def test_channels_in_files_are_moved_together(tmp_path):
    run = align(numbered(tmp_path / "in"), "-o", tmp_path / "out")
    assert run.code == 0
    assert "in: 8 files put together by name: T=4, C=2." in run.stdout
    np.testing.assert_allclose(shifts(tmp_path / "out" / "in" / "shifts.csv"), DRIFT, atol=0.02)
    moved = tifffile.imread(tmp_path / "out" / "in" / "in_aligned.tif")
    assert moved.shape == (4, 2, 40, 48)
    still = movie()[0]
    # Moved as the first channel is, by 3 and 2 pixels but for some thousandths, though it stands still itself.
    np.testing.assert_allclose(moved[3, 1, 4:, 3:], still[1:-3, 1:-2], atol=10)
    assert align(tmp_path / "in", "-o", tmp_path / "out2", "--channel", 1).code == 0
    assert not shifts(tmp_path / "out2" / "in" / "shifts.csv").any()


def test_gaps_are_in_table_record_and_report(tmp_path, monkeypatch):
    numbered(tmp_path / "in", numbers=(1, 2, 5, 6))
    words = "skip time point 3 to 4"
    noted = []
    real = align_run.render_report

    def render(report, drawn):
        noted.extend(report.stacks[0].notes)
        return real(report, drawn)

    monkeypatch.setattr(align_run, "render_report", render)
    run = align(tmp_path / "in", "-o", tmp_path / "out")
    assert words in run.stdout
    assert any(words in note for note in noted)
    xcorr("filter", tmp_path / "in", "-o", tmp_path / "f", "--box", 1, "--device", "cpu")
    assert words in json.dumps(record(tmp_path / "f"))


def test_a_second_call_after_one_without_results_needs_no_cleaning(tmp_path):
    folder = save_frames(tmp_path / "in", "jpg", colours())
    assert align(folder, "-o", tmp_path / "out").code == 1
    assert files(tmp_path / "out") == {"report.html", "run.json"}
    assert align(folder, "-o", tmp_path / "out", "--channel", "G").code == 0
    assert record(tmp_path / "out")["failed"] is False
    refused(align(folder, "-o", tmp_path / "out", "--channel", "R"), "is not empty")


@pytest.mark.parametrize("name", ["notes.txt", "m/shifts.csv", ".hidden"])
def test_what_else_lies_there_is_kept(tmp_path, name):
    stack = write_movie(tmp_path / "m.tif")
    assert align(stack, "-o", tmp_path / "out", "--reference", "99").code == 1
    (tmp_path / "out" / name).parent.mkdir(exist_ok=True)
    (tmp_path / "out" / name).write_text("mine")
    refused(align(stack, "-o", tmp_path / "out"), "is not empty")
    assert (tmp_path / "out" / name).read_text() == "mine"


@pytest.mark.parametrize(
    "text",
    ["[1]", "{", '{"program": "other", "failed": true, "stacks": {}}', '{"program": "xcorr align", "failed": false}'],
)
def test_a_record_of_something_else_is_not_replaced(tmp_path, text):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "run.json").write_text(text)
    refused(align(write_movie(tmp_path / "m.tif"), "-o", tmp_path / "out"), "is not empty")
