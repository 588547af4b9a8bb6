"""`xcorr align --motion patches`: the field in files, the frames that it makes, the report, and what is refused."""

import numpy as np
import pytest

import xcorr_app as xc
from tests.batch.movies import align, record, table, xcorr
from tests.io.samples import write_plain
from tests.registration.patches.test_motion_patches import bent, field_errors
from xcorr_app import read_stack
from xcorr_app.io.source import StackMetadata
from xcorr_app.registration.warping.warp import warp_by_fields

WORDS = (
    "--motion",
    "patches:48",
    "--interpolation",
    "cubic",
    "--device",
    "cpu",
)


@pytest.fixture(scope="module")
def bending(tmp_path_factory):
    """A stack that bends, the folder of its results, and its true shifts."""
    folder = tmp_path_factory.mktemp("bending")
    frames, truth = bent(3, 20, amplitude=3.0, count=4, shape=(120, 135))
    frames = np.clip(frames * 2000 + 12000, 0, 65535).astype(np.uint16)
    write_plain(folder / "b.tif", frames)
    run = align(folder / "b.tif", "-o", folder / "out", *WORDS)
    assert run.code == 0, run.stdout + run.stderr
    return folder, frames, truth


def test_the_field_is_in_files_and_frames_are_moved_by_it(bending):
    folder, frames, truth = bending
    out = folder / "out" / "b"
    result = xc.MotionResult.load(out / "motion.npz")
    assert field_errors(result, truth)[1:].max() < 0.08
    in_python = xc.estimate_motion(frames, "patches", patch=48)
    np.testing.assert_array_equal(result.field.shifts, in_python.field.shifts)
    written = read_stack(out / "b_aligned.tif").data
    assert written.dtype == frames.dtype
    applied = np.round(in_python.field.shifts, 6)
    expected = warp_by_fields(frames, applied, (result.field.rows, result.field.columns), 3)
    np.testing.assert_array_equal(written, expected)
    inner = (slice(None), slice(20, -20), slice(20, -20))
    before, after = (np.abs(stack.astype(float) - frames[0])[inner].mean() for stack in (frames, written))
    assert after < 0.15 * before


def test_quality_of_each_frame_and_the_report(bending):
    folder, frames, truth = bending
    rows = table(folder / "out" / "b" / "patches.csv")
    assert len(rows) == len(frames)
    size = np.hypot(*(truth - truth.mean(axis=(2, 3), keepdims=True)).transpose(1, 0, 2, 3)).max(axis=(1, 2))
    np.testing.assert_allclose([float(row["max_bend"]) for row in rows], size, atol=0.35)
    assert all(float(row["score"]) > 0.97 and float(row["trusted_patches"]) > 0.8 for row in rows)
    assert all(0 < float(row["median_sigma"]) < 0.05 for row in rows[1:])
    facts = record(folder / "out")["stacks"]["b"]
    assert facts["engine"] == "patches"
    assert facts["assessment"]["correlation"]["after"] > 0.95
    assert "48 x 48" in str(facts["decisions"])
    page = (folder / "out" / "report.html").read_text()
    assert "Fields of displacement" in page
    bent_most = truth.var(axis=(2, 3)).sum(axis=1).argmax()
    assert f"how the frame that bends most, {bent_most}," in page


def test_doubtful_frames_follow_their_neighbours(tmp_path):
    frames, _ = bent(3, 20, amplitude=2.0, count=4, shape=(100, 110))
    frames[2] = 0.0
    write_plain(tmp_path / "f.tif", frames)
    words = ("--motion", "patches:40", "--report", "none")
    run = align(tmp_path / "f.tif", "-o", tmp_path / "out", *words)
    rows = table(tmp_path / "out" / "f" / "patches.csv")
    assert "flat" in rows[2]["flags"]
    assert run.code == 0
    result = xc.MotionResult.load(tmp_path / "out" / "f" / "motion.npz")
    applied = result.field.applied(result.trusted, result.doubtful)
    np.testing.assert_allclose(applied[2], (applied[1] + applied[3]) / 2, atol=2e-6)
    dropped = align(tmp_path / "f.tif", "-o", tmp_path / "drop", *words, "--doubtful", "drop")
    assert dropped.code == 0
    assert len(read_stack(tmp_path / "drop" / "f" / "f_aligned.tif").data) == 3


@pytest.fixture(scope="module")
def two_channels(bending):
    """A stack of two channels that bend alike, the second alone, and the results of the first."""
    folder, frames, _ = bending
    other = 65535 - frames[:, ::-1, ::-1] // 2
    both = np.stack([frames, other], axis=1)
    xc.write_stack(folder / "two.ome.tif", both, StackMetadata("TCYX", both.shape, both.dtype, "ome"))
    write_plain(folder / "red.tif", other)
    run = align(folder / "two.ome.tif", "-o", folder / "two", *WORDS, "--report", "none")
    assert run.code == 0, run.stdout + run.stderr
    return folder, other


@pytest.mark.parametrize("source", ["", "two", "two/motion.npz"])
def test_a_field_is_applied_to_other_channels(two_channels, tmp_path, source):
    folder, other = two_channels
    name = "red" if source else "two"
    stack = folder / ("red.tif" if source else "two.ome.tif")
    words = ("--interpolation", "cubic", "--device", "cpu")
    run = xcorr("apply", folder / "two" / source, stack, "-o", tmp_path / "out", *words)
    assert run.code == 0, run.stdout + run.stderr
    moved = read_stack(tmp_path / "out" / name / f"{name}_aligned.tif").data
    moved = moved if source else moved[:, 1]
    result = xc.MotionResult.load(folder / "two" / "two" / "motion.npz")
    field = result.field
    expected = warp_by_fields(other, np.round(field.shifts, 6), (field.rows, field.columns), 3)
    np.testing.assert_array_equal(moved, expected)
    # In Python, and as align moved the channel itself.
    for same in (
        result.apply(other, interpolation=3),
        read_stack(folder / "two" / "two" / "two_aligned.tif").data[:, 1],
    ):
        np.testing.assert_array_equal(same, moved)
    facts = record(tmp_path / "out")["stacks"][name]
    assert facts["largest_shift_px"] == pytest.approx(np.hypot(*np.moveaxis(field.shifts, 3, 0)).max(), abs=1e-5)
    assert facts["matched"] == "by frame number"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--invert"], "holds fields, which have no inverse"),
        (["--match", "name"], "match by number"),
        (["--border", "crop"], "--border constant or nearest"),
        (["--interpolation", "fourier"], "use nearest, linear or cubic"),
        (["--scale", 0.5], "are of frames of 120 x 135"),
    ],
)
def test_what_fields_cannot_do_is_refused(two_channels, tmp_path, words, message):
    folder, _ = two_channels
    motion = folder / "two" / "two" / "motion.npz"
    run = xcorr("apply", motion, folder / "red.tif", "-o", tmp_path / "out", *words)
    assert run.code == 1
    assert message in run.stdout + run.stderr
    assert not (tmp_path / "out" / "red").exists()


def test_fields_of_another_stack_are_refused(two_channels, tmp_path):
    folder, other = two_channels
    write_plain(tmp_path / "short.tif", other[:3])
    run = xcorr("apply", folder / "two" / "two" / "motion.npz", tmp_path / "short.tif", "-o", tmp_path / "out")
    assert run.code == 1
    assert "the fields of 4 frames, the stack 3" in run.stdout
    assert xcorr("apply", folder / "two" / "two" / "shifts.csv", folder / "red.tif", "-o", tmp_path / "mean").code == 0


@pytest.mark.parametrize("policy", ["interpolate", "apply", "leave", "drop"])
def test_frames_in_doubt_move_as_align_moved_them(tmp_path, policy):
    frames, _ = bent(3, 20, amplitude=2.0, count=4, shape=(100, 110))
    frames[2] = frames[2][::-1, ::-1]
    write_plain(tmp_path / "f.tif", frames)
    words = ("--motion", "patches:40", "--report", "none", "--doubtful", policy)
    align(tmp_path / "f.tif", "-o", tmp_path / "out", *words)
    assert not xc.MotionResult.load(tmp_path / "out" / "f" / "motion.npz").trusted[2]
    run = xcorr("apply", tmp_path / "out", tmp_path / "f.tif", "-o", tmp_path / "again", "--device", "cpu")
    assert run.code == 0, run.stdout + run.stderr
    again, before = (read_stack(tmp_path / out / "f" / "f_aligned.tif").data for out in ("again", "out"))
    assert len(again) == (3 if policy == "drop" else 4)
    np.testing.assert_allclose(again, before, atol=1e-4)
    if policy in ("leave", "apply"):
        assert np.array_equal(before[2], frames[2]) == (policy == "leave")
