"""`xcorr field`: displacement of every frame against the first, on a grid."""

import numpy as np
import pytest

from tests.batch.movies import record, shifts, xcorr
from tests.registration.field.test_displacement_field import pair
from xcorr_app import write_stack


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("field")
    first, second = pair(6, np.zeros((2, 96, 112)) + np.array([1.25, -2.0])[:, None, None])
    first, second = ((1000 * image + 8000).astype(np.uint16) for image in (first, second))
    write_stack(folder / "a.tif", first)
    write_stack(folder / "b.tif", second)
    write_stack(folder / "movie.tif", np.stack([first, second, second]))
    return folder


def measuring(*arguments):
    return xcorr("field", "--device", "cpu", *arguments)


def test_two_images(tmp_path, images):
    formats = ("--format", "csv", "--format", "npz", "--format", "ome-tiff")
    run = measuring(images / "a.tif", images / "b.tif", "-o", tmp_path / "out", *formats)
    assert run.code == 0, run.stderr
    (folder,) = (path for path in (tmp_path / "out").iterdir() if path.is_dir() and not path.name.startswith("."))
    pictures = {"quiver", "magnitude", "strain_yy", "strain_xx", "strain_xy", "vorticity"}
    assert {path.name for path in folder.iterdir()} == {"field.csv", "field.npz", "field.ome.tif"} | {
        f"field_{n}.png" for n in pictures
    }
    np.testing.assert_allclose(np.median(shifts(folder / "field.csv"), axis=0), [1.25, -2.0], atol=0.05)
    facts = record(tmp_path / "out")["stacks"][folder.name]
    assert facts["fields"] == 1
    assert facts["largest_displacement_px"] == pytest.approx(np.hypot(1.25, 2.0), abs=0.3)


def test_a_stack_against_the_frame_before_and_resumed(tmp_path, images):
    arguments = (images / "movie.tif", "-o", tmp_path / "out", "--reference", "previous", "--pictures", "svg")
    assert measuring(*arguments).code == 0
    folder = tmp_path / "out" / "movie"
    np.testing.assert_allclose(np.median(shifts(folder / "field_0001.csv"), axis=0), [1.25, -2.0], atol=0.05)
    np.testing.assert_allclose(shifts(folder / "field_0002.csv"), 0, atol=0.03)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert "field_0001_quiver.svg" in before
    run = measuring(*arguments, "--resume")
    assert run.code == 0
    assert "Finished before: movie" in run.stdout
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
