"""A run moves stacks that are doubtful, but right, and calls none good of which nothing is known."""

from __future__ import annotations

import csv

import numpy as np
import pytest
import tifffile
from scipy.ndimage import gaussian_filter, shift

from tests.batch.movies import align

pytestmark = pytest.mark.usefixtures("short_report")


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


def rows_of(out, name="m"):
    with (out / name / "shifts.csv").open() as file:
        rows = list(csv.DictReader(file))
    return rows, np.array([[float(row["applied_dy"]), float(row["applied_dx"])] for row in rows])


@pytest.mark.parametrize(("window", "within"), [("70", 1.0), ("40", 10.0)])
def test_sections_that_are_sure_to_a_pixel_are_moved(tmp_path, window, within):
    stack, truth = sections(2)
    tifffile.imwrite(tmp_path / "m.tif", stack)
    run = align(tmp_path / "m.tif", "-o", tmp_path / "out", "--max-shift", window, "--doubtful", "interpolate:0.5")
    rows, applied = rows_of(tmp_path / "out")
    assert sum("uncertain" in row["flags"] for row in rows) > 6
    # In the smaller window frames are held at its edge: nearer to where they belong than they were.
    assert np.sqrt(np.mean((applied - truth) ** 2)) < within < 0.4 * np.sqrt(np.mean(truth**2))
    assert run.code == 0
    assert "m: good" not in run.stdout
    assert "could not be trusted" in run.stdout


@pytest.mark.parametrize("name", ["mitosis_folder", "dice_rotation20"])
def test_what_has_no_shift_is_not_called_good(tmp_path, shared_data, name):
    """A cell that divides and moves on a stage at rest, and speckle that turns by 20 degrees a frame."""
    run = align(shared_data / name, "-o", tmp_path / "out")
    assert f"{name}: good" not in run.stdout
    assert "could not be trusted" in run.stdout
