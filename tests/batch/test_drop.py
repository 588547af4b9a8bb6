"""Frames in doubt: left out of the written stack, or moved though all are flagged."""

import numpy as np
import pytest
import tifffile
from scipy.ndimage import gaussian_filter, shift

from tests.batch.movies import align, applied, files, movie, record, shifts, table, write_movie
from tests.io.samples import write_imagej, write_ome
from xcorr_app import apply_shifts
from xcorr_app.io import scan_file

pytestmark = pytest.mark.usefixtures("short_report")

PLACES = ((0, 0), (1, -1), (8, 0), (-2, 3), (-8, 0), (3, 2))
"""The third and the fifth lie beyond the window that is searched."""
KEPT = [0, 1, 3, 5]
DROP = ("--max-shift", "5", "--doubtful", "drop")


def run(path, out, *arguments):
    return align(path, "-o", out, *DROP, *arguments)


def name_of_document(path):
    with tifffile.TiffFile(path) as file:
        return file.pages[0].tags.valueof(269)


@pytest.mark.parametrize("resume", [False, True])
def test_the_written_stack_holds_the_others(tmp_path, resume):
    path, out = write_movie(tmp_path / "m.tif", drift=PLACES), tmp_path / "out"
    ended = run(path, out, "-v")
    assert ended.code == 0
    written = (out / "m" / "m_aligned.tif").read_bytes()
    if resume:
        ended = run(path, out, "-v", "--resume")
        assert "Finished before: m" in ended.stdout
    rows, measured = table(out / "m" / "shifts.csv"), shifts(out / "m" / "shifts.csv")
    assert len(rows) == 6
    for t, row in enumerate(rows):
        applied = (row["applied_dy"], row["applied_dx"])
        assert applied == ((row["dy"], row["dx"]) if t in KEPT else ("", ""))
    told = "2 frames without a shift that can be trusted (2, 4): dropped from the written stack, which holds frames"
    assert f"{told} 0-1, 3, 5" in ended.stdout
    assert (out / "m" / "m_aligned.tif").read_bytes() == written
    np.testing.assert_array_equal(
        tifffile.imread(out / "m" / "m_aligned.tif"), apply_shifts(movie(drift=PLACES)[KEPT], measured[KEPT])
    )
    assert name_of_document(out / "m" / "m_aligned.tif") == "frames 0-1, 3, 5 of the input along T"
    assert record(out)["parameters"]["doubtful"] == "drop"


def test_where_every_frame_is_trusted_nothing_changes(tmp_path):
    path = write_movie(tmp_path / "m.tif", drift=PLACES[:2])
    assert run(path, tmp_path / "dropped").code == 0
    assert align(path, "-o", tmp_path / "plain", "--max-shift", "5").code == 0
    one, other = ((tmp_path / name / "m" / "m_aligned.tif").read_bytes() for name in ("dropped", "plain"))
    assert one == other
    assert name_of_document(tmp_path / "dropped" / "m" / "m_aligned.tif") is None


@pytest.mark.parametrize("write", [write_ome, write_imagej])
def test_every_channel_and_what_is_said_of_time(tmp_path, write):
    frames = movie(drift=PLACES)
    data = np.stack([frames, frames[::-1]], axis=1)
    write(tmp_path / "m.tif", data, "TCYX")
    before = scan_file(tmp_path / "m.tif").metadata
    assert run(tmp_path / "m.tif", tmp_path / "out").code == 0
    after = scan_file(tmp_path / "out" / "m" / "m_aligned.tif").metadata
    assert (before.time_increment, after.time_increment) == (2.5, None)
    assert (after.axes, after.shape) == ("TCYX", (4, *before.shape[1:]))
    assert after.pixel_size == before.pixel_size
    assert after.channel_names == before.channel_names
    found = tifffile.imread(tmp_path / "out" / "m" / "m_aligned.tif")
    moves = shifts(tmp_path / "out" / "m" / "shifts.csv")[KEPT]
    for channel in (0, 1):
        np.testing.assert_array_equal(found[:, channel], apply_shifts(data[KEPT, channel], moves))


def test_cropped_to_what_the_frames_that_are_kept_share(tmp_path):
    path = write_movie(tmp_path / "m.tif", drift=PLACES)
    assert run(path, tmp_path / "out", "--border", "crop").code == 0
    assert tifffile.imread(tmp_path / "out" / "m" / "m_aligned.tif").shape == (4, 40 - 3 - 2, 48 - 3 - 1)


def test_where_no_frame_can_be_trusted_nothing_is_written(tmp_path):
    flat = np.full((3, 40, 48), 7, dtype=np.uint8)
    tifffile.imwrite(tmp_path / "m.tif", flat, photometric="minisblack")
    ended = run(tmp_path / "m.tif", tmp_path / "out")
    assert ended.code == 1
    assert "none of its 3 frames has a shift that can be trusted" in ended.stdout
    assert "--doubtful interpolate" in ended.stdout
    assert files(tmp_path / "out") == {"report.html", "run.json"}
    assert record(tmp_path / "out")["failed"]


def sections(seed, count=12, side=200):
    """Sections of a specimen: most of each is its own, and they drift by sixty pixels."""
    rng = np.random.default_rng(seed)
    common = gaussian_filter(rng.normal(size=(side + 160, side + 160)), 6)
    path = np.cumsum(rng.uniform(0, 1, (count, 2)) * [9, 4], axis=0)
    path = (path - path[0]) * 60 / np.abs(path - path[0]).max()
    frames = []
    for place in path:
        own = gaussian_filter(rng.normal(size=(side, side)), 6)
        seen = shift(common / common.std(), place, order=3, mode="wrap")[80 : 80 + side, 80 : 80 + side]
        frames.append(seen + own / own.std() + rng.normal(size=own.shape))
    return (1000 + 50 * np.array(frames)).astype(np.uint16), -path


@pytest.mark.parametrize(("window", "within"), [("70", 1.0), ("40", 10.0)])
def test_sections_that_are_sure_to_a_pixel_are_moved(tmp_path, window, within):
    stack, truth = sections(2)
    tifffile.imwrite(tmp_path / "m.tif", stack)
    run = align(tmp_path / "m.tif", "-o", tmp_path / "out", "--max-shift", window, "--doubtful", "interpolate:0.5")
    moved = applied(tmp_path / "out")
    assert sum("uncertain" in row["flags"] for row in table(tmp_path / "out" / "m" / "shifts.csv")) > 6
    # In the smaller window frames are held at its edge: nearer to where they belong than they were.
    assert np.sqrt(np.mean((moved - truth) ** 2)) < within < 0.4 * np.sqrt(np.mean(truth**2))
    assert run.code == 0
    assert "m: good" not in run.stdout
    assert "could not be trusted" in run.stdout


@pytest.mark.parametrize("name", ["mitosis_folder", "dice_rotation20"])
def test_what_has_no_shift_is_not_called_good(tmp_path, shared_data, name):
    """A cell that divides and moves on a stage at rest, and speckle that turns by 20 degrees a frame."""
    run = align(shared_data / name, "-o", tmp_path / "out")
    assert f"{name}: good" not in run.stdout
    assert "could not be trusted" in run.stdout
