"""`xcorr apply`: shifts measured on one stack move another."""

import shutil

import numpy as np
import pytest

from tests.batch.movies import DRIFT, align, movie, record, refused, write_movie, xcorr
from xcorr_app import apply_shifts, load_shifts, read_stack, write_stack
from xcorr_app.io.source import StackMetadata


@pytest.fixture(scope="module")
def aligned(tmp_path_factory):
    """Folder of results of one stack, `m`, and the stack."""
    folder = tmp_path_factory.mktemp("apply")
    stack = write_movie(folder / "m.tif")
    assert align(stack, "-o", folder / "out", "--max-shift", 6, "--report", "none").code == 0
    return folder / "out", stack


def applying(*arguments):
    return xcorr("apply", "--device", "cpu", *arguments)


def result(out, name="m"):
    return read_stack(out / name / f"{name}_aligned.tif")


@pytest.mark.parametrize("shifts", ["", "m/shifts.csv", "m"])
def test_the_same_stack_becomes_what_align_wrote(tmp_path, aligned, shifts):
    out, stack = aligned
    run = applying(out / shifts, stack, "-o", tmp_path / "again")
    assert run.code == 0, run.stderr
    np.testing.assert_array_equal(result(tmp_path / "again").data, result(out).data)
    facts = record(tmp_path / "again")["stacks"]["m"]
    assert facts["matched"] == "by frame number"
    assert facts["largest_shift_px"] == pytest.approx(np.hypot(*np.array(DRIFT).T).max(), abs=0.05)


def test_other_channels_type_and_calibration_are_kept(tmp_path, aligned):
    out, _ = aligned
    planes = np.stack([movie(seed=1, dtype="float32"), movie(seed=2, dtype="float32")], axis=1)
    metadata = StackMetadata("TCYX", planes.shape, planes.dtype, "ome", pixel_size=(0.25, 0.25), unit="µm")
    write_stack(tmp_path / "two.ome.tif", planes, metadata)
    run = applying(
        out / "m" / "shifts.csv", tmp_path / "two.ome.tif", "-o", tmp_path / "out", "--interpolation", "cubic"
    )
    assert run.code == 0, run.stderr
    moved = result(tmp_path / "out", "two")
    shifts = load_shifts(out / "m" / "shifts.csv")
    for channel in range(2):
        np.testing.assert_array_equal(moved.data[:, channel], apply_shifts(planes[:, channel], shifts, interpolation=3))
    assert (moved.metadata.axes, moved.metadata.pixel_size) == ("TCYX", (0.25, 0.25))


def test_inverted_and_scaled_and_cropped(tmp_path, aligned):
    out, stack = aligned
    run = applying(out, stack, "-o", tmp_path / "out", "--invert", "--scale", 0.5, "--border", "crop")
    assert run.code == 0, run.stderr
    whole = apply_shifts(read_stack(stack).data, -0.5 * load_shifts(out / "m" / "shifts.csv"))
    cropped = result(tmp_path / "out").data
    (line,) = (note for note in record(tmp_path / "out")["stacks"]["m"]["notes"] if note.startswith("Cropped"))
    top, left = (int(part.split(":")[0]) for part in line.split()[3::3])
    np.testing.assert_array_equal(cropped, whole[:, top : top + cropped.shape[1], left : left + cropped.shape[2]])


def test_files_find_their_shifts_by_name(tmp_path):
    frames = movie()
    (tmp_path / "f").mkdir()
    for name, frame in zip("dbca", frames, strict=True):
        write_stack(tmp_path / "f" / f"{name}.tif", frame)
    lines = [f"{name}.tif,{dy},{dx}" for name, (dy, dx) in zip("dbca", DRIFT, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["source,dy,dx", *lines, ""]))
    run = applying(tmp_path / "t.csv", tmp_path / "f", "-o", tmp_path / "out")
    assert run.code == 0, run.stderr
    (facts,) = record(tmp_path / "out")["stacks"].values()
    assert facts["matched"] == "by file name"
    expected = apply_shifts(frames[[3, 1, 2, 0]], np.array(DRIFT)[[3, 1, 2, 0]])
    np.testing.assert_array_equal(result(tmp_path / "out", "f").data, expected)
    by_number = applying(tmp_path / "t.csv", tmp_path / "f", "-o", tmp_path / "n", "--match", "number")
    assert by_number.code == 0
    np.testing.assert_array_equal(result(tmp_path / "n", "f").data, apply_shifts(frames[[3, 1, 2, 0]], DRIFT))


def test_frames_that_the_table_lacks(tmp_path, aligned):
    _, stack = aligned
    (tmp_path / "t.csv").write_text("frame,dy,dx\n3,3,-3\n0,0,0\n")
    refused_run = applying(tmp_path / "t.csv", stack, "-o", tmp_path / "out")
    assert refused_run.code == 1
    assert "lacks frames 1-2 of 4" in refused_run.stdout
    run = applying(tmp_path / "t.csv", stack, "-o", tmp_path / "i", "--missing", "interpolate")
    assert (run.code, "Not in the table: frames" in run.stdout) == (0, True)
    expected = apply_shifts(read_stack(stack).data, [(0, 0), (1, -1), (2, -2), (3, -3)])
    np.testing.assert_array_equal(result(tmp_path / "i").data, expected)
    (tmp_path / "t.csv").write_text("frame,dy,dx\n0,0,0\n1,1,1\n2,,\n3,1,0\n4,0,0\n")
    assert (
        "the table has frames 4, the stack 4 in all" in applying(tmp_path / "t.csv", stack, "-o", tmp_path / "o").stdout
    )


def test_a_frame_left_out_by_the_table_is_left_out(tmp_path, aligned):
    _, stack = aligned
    (tmp_path / "t.csv").write_text("frame,dy,dx,applied_dy,applied_dx\n0,9,9,0,0\n1,9,9,1,-1\n2,9,9,,\n3,9,9,3,2\n")
    run = applying(tmp_path / "t.csv", stack, "-o", tmp_path / "out")
    assert run.code == 0
    assert "left out: frames 2." in run.stdout
    expected = apply_shifts(read_stack(stack).data[[0, 1, 3]], [(0, 0), (1, -1), (3, 2)])
    np.testing.assert_array_equal(result(tmp_path / "out").data, expected)


def test_a_table_that_leaves_every_frame_out_moves_nothing(tmp_path, aligned):
    _, stack = aligned
    lines = [f"{frame},1,1,," for frame in range(len(DRIFT))]
    (tmp_path / "t.csv").write_text("\n".join(["frame,dy,dx,applied_dy,applied_dx", *lines, ""]))
    run = applying(tmp_path / "t.csv", stack, "-o", tmp_path / "out")
    assert run.code == 1
    assert "has no shift for any frame of this stack" in " ".join(run.stdout.split())
    assert not (tmp_path / "out" / "m").exists()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", "a,b\n1,2\n", "has no columns dy and dx"),
        ("t.csv", "", "has no columns dy and dx"),
        ("t.csv", "frame,dy,dx\n", "no line of numbers"),
        ("t.csv", "frame,dy,dx\n0,1,x\n", "line 2"),
        ("t.csv", "frame,dy,dx\n0,1\n", "line 2"),
        ("t.csv", "frame,dy,dx\n-1,1,1\n", "line 2"),
        ("t.csv", "frame,dy,dx\n0,1,1\n0,1,1\n", "a frame appears twice"),
        ("t.csv", "frame,dy,dx\n0,inf,1\n", "an infinite shift"),
        ("t.csv", "frame,dy,dx\n999999999999,1,1\n", "is beyond"),
        ("t.npy", np.zeros((4, 3)), "shifts are (frames, 2)"),
        ("t.npz", "PK", "holds no shifts"),
        ("t.tif", "II", "shifts are read from"),
    ],
)
def test_what_is_no_table_is_refused_before_anything_is_written(tmp_path, aligned, name, content, words):
    _, stack = aligned
    path = tmp_path / name
    np.save(path, content) if isinstance(content, np.ndarray) else path.write_text(content)
    run = applying(path, stack, "-o", tmp_path / "out")
    assert run.code == 2
    assert words in run.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_without_the_stack_names_what_it_has(tmp_path, aligned):
    out, stack = aligned
    other = tmp_path / "other.tif"
    other.write_bytes(stack.read_bytes())
    refused(applying(out, other, "-o", tmp_path / "out"), "holds no shifts of other", "it has those of m")
    both = applying(out, stack, other, "-o", tmp_path / "both")
    assert both.code == 1
    assert "holds no shifts of other; it has those of m" in " ".join(both.stdout.split())
    assert (tmp_path / "both" / "m" / "m_aligned.tif").is_file()


@pytest.fixture(scope="module")
def namesakes(tmp_path_factory):
    """Folder of results of stacks whose names are alike: two of one stem, and three that differ late; and theirs."""
    folder = tmp_path_factory.mktemp("namesakes")
    drifts = {"a/x": 1, "b/x": 2} | {f"long/{'n' * 120}{letter}": 3 + i for i, letter in enumerate("pqr")}
    for place, step in drifts.items():
        write_movie(folder / f"{place}.tif", drift=((0, 0), (step, 0)))
    run = align(*(folder / place for place in ("a", "b", "long")), "-o", folder / "out", "--max-shift", 7)
    assert run.code == 0, run.stderr
    return folder, {folder / f"{place}.tif": step for place, step in drifts.items()}


def moved_by(out):
    """Largest shift that each input was moved by."""
    stacks = record(out)["stacks"].values()
    return {next(iter(stack["inputs"])): round(stack["largest_shift_px"]) for stack in stacks if "table" in stack}


def test_each_stack_is_moved_by_its_own_shifts_whichever_others_are_there(tmp_path, namesakes):
    folder, steps = namesakes
    for path, step in steps.items():
        assert applying(folder / "out", path, "-o", tmp_path / str(step)).code == 0
        assert moved_by(tmp_path / str(step)) == {str(path): step}
    assert applying(folder / "out", *list(steps)[::-1], "-o", tmp_path / "all").code == 0
    assert moved_by(tmp_path / "all") == {str(path): step for path, step in steps.items()}


def test_stacks_of_one_name_are_told_apart_by_their_folders_or_refused(tmp_path, namesakes):
    folder, _ = namesakes
    for place, seed in (("raw/a", 5), ("raw/b", 6), ("c", 7)):
        write_movie(tmp_path / place / "x.tif", seed=seed, drift=((0, 0), (1, 0)))
    raw = [tmp_path / "raw" / "b" / "x.tif", tmp_path / "raw" / "a" / "x.tif"]
    shutil.copytree(folder / "out", tmp_path / "killed")
    (tmp_path / "killed" / "run.json").unlink()
    for of in (folder / "out", tmp_path / "killed"):
        assert applying(of, *raw, "-o", tmp_path / "out", "--overwrite").code == 0
        assert moved_by(tmp_path / "out") == {str(raw[0]): 2, str(raw[1]): 1}
    unknown = tmp_path / "c" / "x.tif"
    refused(
        applying(folder / "out", unknown, "-o", tmp_path / "n"), "cannot be told from other stacks named x", "a/x.tif"
    )
    both = applying(folder / "out", unknown, raw[0], "-o", tmp_path / "both")
    assert both.code == 1
    assert moved_by(tmp_path / "both") == {str(raw[0]): 2}


def test_shifts_of_a_namesake_are_not_taken_for_those_of_a_stack_that_failed(tmp_path):
    bad, good = tmp_path / "a" / "x.tif", tmp_path / "b" / "x.tif"
    write_movie(bad, drift=((0, 0), (1, 1)))
    write_movie(good)
    assert align(bad, good, "-o", tmp_path / "out", "--max-shift", 6, "--reference", 3).code == 1
    assert not (tmp_path / "out" / "x").exists()
    refused(applying(tmp_path / "out", bad, "-o", tmp_path / "moved"), "holds no shifts of x")


def test_resume_notices_another_table(tmp_path, aligned):
    _, stack = aligned
    for dy, resumed in ((1, []), (1, ["m"]), (2, [])):
        (tmp_path / "t.csv").write_text("dy,dx\n" + f"{dy},0\n" * 4)
        assert applying(tmp_path / "t.csv", stack, "-o", tmp_path / "out", "--resume").code == 0
        assert record(tmp_path / "out")["resumed"] == resumed
    np.testing.assert_array_equal(result(tmp_path / "out").data, apply_shifts(read_stack(stack).data, (2, 0)))
    (tmp_path / "u.csv").write_text("dy,dx\n" + "1,0\n" * 4)
    refused(applying(tmp_path / "u.csv", stack, "-o", tmp_path / "out", "--resume"), "holds a run with shifts")
