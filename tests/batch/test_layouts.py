"""What a user can point at: folders of pages, folders of stacks, files, globs, hyperstacks, PNG."""

import imagecodecs
import numpy as np
import pytest
import tifffile

from tests.batch.movies import DRIFT, align, movie, shifts, table
from tests.io.samples import write_imagej, write_ome, write_plain

pytestmark = pytest.mark.usefixtures("short_report")


def write_pages(folder, frames, suffix="tif"):
    """Frames numbered 8, 9, 10, 11: their natural order is not the alphabetical one."""
    folder.mkdir()
    for number, frame in enumerate(frames, start=8):
        path = folder / f"t{number}.{suffix}"
        if suffix == "png":
            path.write_bytes(imagecodecs.png_encode(frame))
        else:
            write_plain(path, frame)
    return folder


def hyperstack():
    """T, C, Z, Y, X with the drift of `movie` in every plane, each plane brighter than the one before."""
    frames = movie()[:, None, None]
    return (frames + np.arange(6, dtype=np.uint16).reshape(1, 2, 3, 1, 1) * 100).astype(np.uint16)


@pytest.mark.parametrize("suffix", ["tif", "png"])
def test_folder_of_single_pages_is_one_series_in_human_order(tmp_path, suffix):
    run = align(write_pages(tmp_path / "series", movie(), suffix), "-o", tmp_path / "out")
    assert run.code == 0
    rows = table(tmp_path / "out" / "series" / "shifts.csv")
    assert [row["source"] for row in rows] == [f"t{number}.{suffix}" for number in (8, 9, 10, 11)]
    assert [row["page"] for row in rows] == ["0"] * 4
    np.testing.assert_allclose(shifts(tmp_path / "out" / "series" / "shifts.csv"), DRIFT, atol=0.02)
    assert tifffile.imread(tmp_path / "out" / "series" / "series_aligned.tif").shape == (4, 40, 48)
    assert "1 stack in 4 files, layout frames" in run.stdout


@pytest.mark.parametrize(("write", "axes"), [(write_ome, "TCZYX"), (write_imagej, "TZCYX")])
def test_hyperstack_moves_every_plane_by_its_frames_shift(tmp_path, write, axes):
    data = hyperstack() if axes == "TCZYX" else hyperstack().transpose(0, 2, 1, 3, 4)
    source = tmp_path / "cells.ome.tif" if write is write_ome else tmp_path / "cells.tif"
    write(source, data, axes)
    assert align(source, "-o", tmp_path / "out").code == 0
    np.testing.assert_allclose(shifts(tmp_path / "out" / "cells" / "shifts.csv"), DRIFT, atol=0.02)
    with tifffile.TiffFile(tmp_path / "out" / "cells" / "cells_aligned.tif") as tif:
        assert (tif.is_ome, tif.is_imagej) == (write is write_ome, write is write_imagej)
        assert tif.series[0].axes == axes
        moved = tif.asarray()
    assert (moved.shape, moved.dtype) == (data.shape, data.dtype)
    # Away from the border all frames now show the same scene, in every channel and plane.
    inner = moved[..., 6:-6, 6:-6].astype(int)
    assert np.abs(inner - inner[:1]).max() <= 30
    assert np.abs(data[..., 6:-6, 6:-6].astype(int) - data[:1, ..., 6:-6, 6:-6]).max() > 300


def test_axis_z_and_align_channel(tmp_path):
    # Only channel 1 shows the drift, along Z; channel 0 shows noise that stands still.
    still = np.broadcast_to(movie(seed=5)[0], (4, 40, 48))
    write_ome(tmp_path / "z.ome.tif", np.stack([still, movie()], axis=1), "ZCYX")
    assert align(tmp_path / "z.ome.tif", "-o", tmp_path / "one", "--axis", "Z", "--channel", "1").code == 0
    np.testing.assert_allclose(shifts(tmp_path / "one" / "z" / "shifts.csv"), DRIFT, atol=0.02)
    assert align(tmp_path / "z.ome.tif", "-o", tmp_path / "zero").code == 0
    np.testing.assert_allclose(shifts(tmp_path / "zero" / "z" / "shifts.csv"), 0, atol=1e-6)
    run = align(tmp_path / "z.ome.tif", "-o", tmp_path / "two", "--channel", "2")
    assert run.code == 1
    assert "has 2 channel(s)" in run.stdout
