"""No warning of any kind reaches a user: data at the limits of their type pass with warnings turned into errors."""

import numpy as np
import pytest

from tests.batch.movies import movie, start
from tests.io.samples import write_plain


def extremes():
    """Float stacks: name and frames."""
    for dtype, factors in (("float32", (1e-42, 1e-30, 1e30, 1e35)), ("float64", (1e-310, 1e-30, 1e30, 1e300))):
        for factor in factors:
            yield f"{dtype}_{factor:g}", (movie(dtype="float64") * factor).astype(dtype)
        frames = movie(dtype=dtype)
        frames[0], frames[0, 0, 0] = np.finfo(dtype).max, -np.finfo(dtype).max
        frames[1, 0], frames[2] = np.inf, np.nan
        frames[3, :20], frames[3, 20:] = np.inf, -np.inf
        yield f"{dtype}_limits", frames


@pytest.mark.share(2)
@pytest.mark.parametrize("options", [(), ("--interpolation", "cubic", "--border", "crop", "--reference", "mean")])
def test_odd_data_pass_with_warnings_as_errors(tmp_path, options):
    folder = tmp_path / "in"
    folder.mkdir()
    for shape in ((1, 1), (1, 30), (30, 1), (2, 2)):
        frames = np.arange(3 * shape[0] * shape[1], dtype=np.uint8).reshape(3, *shape)
        write_plain(folder / f"tiny_{shape[0]}_{shape[1]}.tif", frames)
    for name, frames in extremes():
        write_plain(folder / f"{name}.tif", frames)
    write_plain(folder / "constant.tif", np.full((3, 20, 20), 7, np.uint16))
    with start("--layout", "stacks", "--device", "cpu", folder, "-o", tmp_path / "out", *options) as process:
        stdout, stderr = process.communicate()
    assert stderr == ""
    assert "Warning" not in stdout
    assert "this is a defect" not in stdout
    assert process.returncode == 1  # for the frames that hold nothing
    assert len(list((tmp_path / "out").glob("*/shifts.csv"))) == len(list(folder.iterdir()))


def test_empty_folder_and_help_with_warnings_as_errors(tmp_path):
    (tmp_path / "empty").mkdir()
    with start(tmp_path / "empty", "-o", tmp_path / "out") as process:
        _, stderr = process.communicate()
    assert process.returncode == 2
    assert len(stderr.splitlines()) == 1
