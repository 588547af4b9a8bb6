"""`xcorr align --motion` and `--mask`, and `xcorr apply` of what they found."""

import numpy as np
import pytest

from tests.batch.movies import align, applied, movie, record, shifts, table, xcorr
from tests.io.samples import write_plain
from tests.registration.motion.test_motion import corner_errors, series
from xcorr_app import load_shifts, read_stack, write_stack
from xcorr_app.errors import InputError
from xcorr_app.registration.warping.warp import warp_frames


@pytest.fixture(scope="module")
def turning(tmp_path_factory):
    """A stack that turns, what aligned it, and its true matrices."""
    folder = tmp_path_factory.mktemp("turning")
    frames, truth = series("rigid", 20, 3, shape=(96, 90), count=4)
    frames = np.clip(frames * 2000 + 12000, 0, 65535).astype(np.uint16)
    write_plain(folder / "t.tif", frames)
    run = align(folder / "t.tif", "-o", folder / "out", "--motion", "rigid", "--interpolation", "cubic")
    assert run.code == 0, run.stderr
    return folder, frames, truth


def test_the_table_holds_the_motion_and_the_file_the_frames_that_it_makes(turning):
    folder, frames, truth = turning
    rows = table(folder / "out" / "t" / "motion.csv")
    matrices = np.array([[float(row[f"m{i}{j}"]) for i in (0, 1) for j in (0, 1, 2)] for row in rows])
    matrices = np.concatenate([matrices.reshape(-1, 2, 3), np.tile([[[0.0, 0, 1]]], (4, 1, 1))], axis=1)
    assert corner_errors(matrices, truth, frames.shape[1:]).max() < 0.05
    expected = np.degrees(np.arctan2(truth[:, 1, 0], truth[:, 0, 0]))
    np.testing.assert_allclose([float(row["angle"]) for row in rows], expected, atol=0.05)
    written = read_stack(folder / "out" / "t" / "t_aligned.tif").data
    np.testing.assert_array_equal(written, warp_frames(frames, matrices, 3))
    facts = record(folder / "out")["stacks"]["t"]
    assert facts["engine"] == "gauss-newton"
    assert facts["assessment"]["correlation"]["after"] > 0.9 > facts["assessment"]["correlation"]["before"]
    assert "Gauss-Newton" in str(facts["decisions"])


def test_motion_travels_to_other_channels_and_back(turning):
    folder, frames, _ = turning
    other = (frames[::-1] // 2 + 7).astype(np.uint16)
    write_plain(folder / "other.tif", other)
    words = ["--device", "cpu", "--interpolation", "cubic"]
    run = xcorr("apply", folder / "out" / "t", folder / "other.tif", "-o", folder / "apply", *words)
    assert run.code == 0, run.stdout
    rows = table(folder / "out" / "t" / "motion.csv")
    moved = read_stack(folder / "apply" / "other" / "other_aligned.tif").data
    whole = xcorr("apply", folder / "out", folder / "t.tif", "-o", folder / "again", *words)
    assert whole.code == 0
    again = read_stack(folder / "again" / "t" / "t_aligned.tif").data
    np.testing.assert_array_equal(again, read_stack(folder / "out" / "t" / "t_aligned.tif").data)
    assert moved.shape == frames.shape
    assert xcorr("apply", folder / "out", folder / "t.tif", "-o", folder / "crop", "--border", "crop").code == 1
    with pytest.raises(InputError, match="holds motions"):
        load_shifts(folder / "out" / "t" / "motion.csv")
    assert len(rows) == 4
    # There and back is where it was, away from the edges.
    write_stack(folder / "there.tif", again)
    back = xcorr("apply", folder / "out" / "t", folder / "there.tif", "-o", folder / "back", "--invert", *words)
    assert back.code == 0
    inner = (slice(None), slice(38, 58), slice(35, 55))
    restored = read_stack(folder / "back" / "there" / "there_aligned.tif").data.astype(float)
    assert np.abs(restored - frames)[inner].mean() < 0.05 * frames[inner].std()


@pytest.mark.parametrize("model", ["rigid", "similarity", "affine"])
def test_motions_less_sure_than_asked_are_applied_where_the_others_say_less(model, shared_data, tmp_path):
    """Corners of cells that change are known to 0.6 px or worse; what neighbours say lies 3 to 15 px aside."""
    assert xcorr("align", shared_data / "pc12" / "pc12-unreg.tif", "-o", tmp_path / "out", "--motion", model).code == 0
    rows, moved = table(tmp_path / "out" / "pc12-unreg" / "shifts.csv"), applied(tmp_path / "out", "pc12-unreg")
    np.testing.assert_allclose(  # TurboReg
        moved, [(0, 0), (8.52, -0.09), (13.67, 0.12), (15.32, 0.85), (12.45, -0.33)], atol=0.3
    )
    assert rows[4]["flags"] == "uncertain"


def test_a_binned_copy_moves_by_half(turning, tmp_path):
    folder, frames, _ = turning
    binned = frames.reshape(4, 48, 2, 45, 2).mean(axis=(2, 4)).astype(np.float32)
    write_stack(tmp_path / "t.tif", binned)
    run = xcorr("apply", folder / "out", tmp_path / "t.tif", "-o", tmp_path / "out", "--scale", 0.5, "--device", "cpu")
    assert run.code == 0, run.stdout
    moved = read_stack(tmp_path / "out" / "t" / "t_aligned.tif").data
    inner = (slice(None), slice(16, 32), slice(15, 30))
    errors = [np.abs(frame - moved[0])[inner[1:]].mean() for frame in moved]
    assert max(errors) < 0.1 * binned[0][inner[1:]].std()


def test_masks_of_the_command(tmp_path):
    frames = movie(shape=(80, 96))
    mask = np.zeros((80, 96), np.uint8)
    mask[10:70, 12:84] = 255
    write_plain(tmp_path / "m.tif", np.where(mask > 0, frames, 0).astype(frames.dtype))
    write_stack(tmp_path / "mask.tif", mask)
    found = []
    for name, value in (("rule", "nonzero"), ("file", tmp_path / "mask.tif")):
        run = align(tmp_path / "m.tif", "-o", tmp_path / name, "--mask", value, "--max-shift", 6)
        assert run.code == 0, run.stdout + run.stderr
        found.append(shifts(tmp_path / name / "m" / "shifts.csv"))
        assert record(tmp_path / name)["parameters"]["mask"] == str(value)
    np.testing.assert_allclose(found[0], [(0, 0), (1, -1), (-2, 3), (3, 2)], atol=0.05)
    np.testing.assert_allclose(found[1], found[0], atol=1e-9)
    assert record(tmp_path / "file")["mask_file"]
    write_stack(tmp_path / "small.tif", mask[:40])
    wrong = align(tmp_path / "m.tif", "-o", tmp_path / "wrong", "--mask", tmp_path / "small.tif")
    assert wrong.code == 1
    assert "mask is 40 x 96" in wrong.stdout
