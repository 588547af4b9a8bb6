"""What is wrong does not pass for a result: input that changes in mid-run, damage, an earlier input, failed checks."""

import os

import imagecodecs
import numpy as np
import pytest
import tifffile

from tests.batch.movies import DRIFT, align, files, movie, record, shifts, write_movie, write_movies
from tests.io.samples import write_ome, write_plain
from xcorr_app.errors import DamagedFileError, OutputError
from xcorr_app.io import read_stack, write_stack
from xcorr_app.io.tiff.tiff import TiffImage
from xcorr_app.io.writing import write as write_module

pytestmark = pytest.mark.usefixtures("short_report")

CHANGES = {
    "changed": lambda path: os.utime(path, ns=(0, 0)),
    "cut short": lambda path: os.truncate(path, path.stat().st_size // 2),
    "gone": lambda path: path.unlink(),
    "replaced": lambda path: path.write_bytes(b"something else"),
}


@pytest.fixture
def folder(tmp_path):
    return write_movies(tmp_path / "in", "abc", drift=DRIFT * 3)


@pytest.mark.share(4)
@pytest.mark.parametrize("memory", ["0MB", "100MB"])
@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("reads", [0, 3])
def test_the_stack_fails_and_the_others_go_on(tmp_path, folder, monkeypatch, memory, what, reads):
    real, left = TiffImage.read_into, [reads]

    def read(self, pages, *others):
        if self.path.name == "b.tif":
            left[0] -= 1
            if left[0] == -1:
                CHANGES[what](self.path)
        return real(self, pages, *others)

    monkeypatch.setattr("xcorr_app.io.cached_planes._BYTES_AT_ONCE", 1)
    monkeypatch.setattr(TiffImage, "read_into", read)
    run = align(folder, "-o", tmp_path / "out", "--memory", memory)
    if left[0] >= 0:
        assert run.code == 0  # all was read by fewer calls
        return
    assert run.code == 1
    known = record(tmp_path / "out")
    # Frames that cannot be read any more are unreadable; where none can, or the file is another now, the stack failed.
    b = known["stacks"]["b"]
    assert "failure" in b or b["unreadable"]
    assert not [name for name in files(tmp_path / "out") if "partial" in name]
    for number, name in ((0, "a"), (2, "c")):
        expected = np.array(DRIFT * 3)
        np.testing.assert_allclose(shifts(tmp_path / "out" / name / "shifts.csv"), expected, atol=0.05)
        assert tifffile.imread(tmp_path / "out" / name / f"{name}_aligned.tif").shape == (12, 40, 48)
        assert "failure" not in known["stacks"][name], number


@pytest.mark.parametrize("memory", ["0MB", "100MB"])
def test_an_input_that_changes_after_it_was_read_is_not_taken_for_what_was_measured(
    tmp_path, folder, monkeypatch, memory
):
    from xcorr_app.batch.align import stack

    real = stack.move_stack

    def move(frames, *others, **how):
        moved = real(frames, *others, **how)
        if frames.source.name == "b":
            write_movie(folder / "b.tif", seed=9, drift=DRIFT * 3)
        return moved

    monkeypatch.setattr(stack, "move_stack", move)
    # Nothing of a file's end is read with the planes, so that its checksum remains to be finished.
    monkeypatch.setattr("xcorr_app.io.checksum._TAIL", -1)
    run = align(folder, "-o", tmp_path / "out", "--memory", memory)
    assert run.code in (0, 1)
    (checksum,) = record(tmp_path / "out")["stacks"]["b"]["inputs"].values()
    assert "was changed by another program" in checksum
    monkeypatch.undo()
    again = align(folder, "-o", tmp_path / "out", "--memory", memory, "--resume")
    assert again.code == 0, again.stderr + again.stdout
    assert record(tmp_path / "out")["resumed"] == ["a", "c"]


DECODED = {
    "compressed": lambda folder, frames: write_plain(folder / "b.tif", frames, compression="zlib"),
    "tiled": lambda folder, frames: write_plain(folder / "b.tif", frames, tile=(16, 16)),
    "npy": lambda folder, frames: np.save(folder / "b.npy", frames),
    "images": lambda folder, frames: [
        (folder / f"{number:02}.png").write_bytes(imagecodecs.png_encode(frame)) for number, frame in enumerate(frames)
    ],
    "numbered": lambda folder, frames: [
        write_plain(folder / f"b_t{number:02}_z{z}.tif", frame, compression="zlib")
        for number, frame in enumerate(frames)
        for z in (0, 1)
    ],
}


@pytest.mark.share(3)
@pytest.mark.parametrize("memory", ["0MB", "100MB"])
@pytest.mark.parametrize("kind", DECODED)
def test_what_replaces_an_input_of_which_the_bytes_are_not_seen_is_measured_by_resume(
    tmp_path, monkeypatch, memory, kind
):
    from xcorr_app.batch.align import stack

    (tmp_path / "in").mkdir()
    DECODED[kind](tmp_path / "in", movie(seed=1, drift=DRIFT))
    real, new = stack.move_stack, movie(seed=9, drift=DRIFT)

    def move(*what, **how):
        moved = real(*what, **how)
        DECODED[kind](tmp_path / "in", new)
        return moved

    with monkeypatch.context() as patch:
        patch.setattr(stack, "move_stack", move)
        assert align(tmp_path / "in", "-o", tmp_path / "out", "--memory", memory).code in (0, 1)
    ((name, known),) = record(tmp_path / "out")["stacks"].items()
    assert all("was changed by another program" in checksum for checksum in known["inputs"].values())
    assert align(tmp_path / "in", "-o", tmp_path / "out", "--memory", memory, "--resume").code == 0
    assert record(tmp_path / "out")["resumed"] == []
    moved = tifffile.imread(tmp_path / "out" / name / f"{name}_aligned.tif")
    np.testing.assert_array_equal(moved.reshape(4, -1, 40, 48)[0, 0], new[0])


def test_a_reader_that_fails_stops_its_stack_only(tmp_path, folder, monkeypatch):
    real = TiffImage.read_into

    def read(self, pages, *others):
        if self.path.name == "b.tif":
            raise MemoryError
        return real(self, pages, *others)

    monkeypatch.setattr(TiffImage, "read_into", read)
    run = align(folder, "-o", tmp_path / "out")
    assert run.code == 1
    assert "b: needs more memory than there is" in run.stdout
    assert [name for name in "abc" if "failure" in record(tmp_path / "out")["stacks"][name]] == ["b"]
    np.testing.assert_array_equal(
        tifffile.imread(tmp_path / "out" / "a" / "a_aligned.tif")[0], movie(seed=0, drift=DRIFT * 3)[0]
    )


def test_what_could_not_be_read_is_read_again_by_resume(tmp_path, folder, monkeypatch):
    """The bytes are the same, so is their checksum: only the record tells that a disk was away for a moment."""
    real = TiffImage.read_into

    def read(self, pages, *others):
        if self.path.name == "b.tif" and 3 in pages:
            raise DamagedFileError("b.tif: away")
        return real(self, pages, *others)

    with monkeypatch.context() as patch:
        patch.setattr(TiffImage, "read_into", read)
        assert align(folder, "-o", tmp_path / "out").code == 1
    assert record(tmp_path / "out")["stacks"]["b"]["unreadable"]
    assert align(folder, "-o", tmp_path / "out", "--resume").code == 0
    assert record(tmp_path / "out")["resumed"] == ["a", "c"]
    assert not record(tmp_path / "out")["stacks"]["b"]["unreadable"]


def test_a_damaged_plane_of_a_channel_that_is_not_measured(tmp_path):
    """Of a frame whose measured plane is sound; it is no plane of zeros in the output."""
    path = tmp_path / "m.ome.tif"
    data = np.stack([movie(), movie(seed=1)], axis=1)
    write_ome(path, data, "TCYX", compression="zlib")
    with tifffile.TiffFile(path) as file:
        page = file.pages[2 * 2 + 1]
        offset, count = page.dataoffsets[0], page.databytecounts[0]
    content = bytearray(path.read_bytes())
    content[offset : offset + count] = bytes(count)
    path.write_bytes(content)
    run = align(path, "-o", tmp_path / "out")
    assert run.code == 1
    assert "failure" in record(tmp_path / "out")["stacks"]["m"]
    assert not [name for name in files(tmp_path / "out") if name.startswith("m/")]


def test_results_of_an_earlier_input_go_when_the_new_one_fails(tmp_path):
    path, out = write_movie(tmp_path / "m.tif"), tmp_path / "out"
    write_movie(tmp_path / "n.tif", seed=1)
    assert align(path, tmp_path / "n.tif", "-o", out).code == 0
    assert "m/m_aligned.tif" in files(out)
    write_plain(path, np.full((4, 40, 48), 7, "uint16"))  # flat: no shift can be measured
    assert align(path, tmp_path / "n.tif", "-o", out, "--resume").code == 1
    stale = tifffile.imread(out / "m" / "m_aligned.tif") if (out / "m" / "m_aligned.tif").exists() else np.array(7)
    assert (stale == 7).all()
    assert record(out)["resumed"] == ["n"]


def test_what_does_not_read_back_gets_no_name(tmp_path, monkeypatch):
    stack = read_stack(write_movie(tmp_path / "m.tif"))

    def damaged(*_arguments, **_options):
        raise DamagedFileError("directory 2 is beyond the end")

    monkeypatch.setattr(write_module, "scan_tiff", damaged)
    with pytest.raises(OutputError, match=r"does not read back .*directory 2"):
        write_stack(tmp_path / "copy.tif", stack.data, stack.metadata)
    assert [path.name for path in tmp_path.iterdir()] == ["m.tif"]
