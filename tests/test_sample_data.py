"""The sample stacks: what the script makes is what lies in the folder, and the table's sign is the one it states."""

from __future__ import annotations

import csv
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
import tifffile

SAMPLES = Path(__file__).resolve().parents[1] / "sample_data"


@pytest.fixture(scope="module")
def made():
    """The script's own stacks and displacements, drawn anew."""
    spec = importlib.util.spec_from_file_location("make_sample_data", SAMPLES / "make_sample_data.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield {"drifting_cells": module.drifting_cells(), "single_pages": module.single_pages(), "module": module}
    del sys.modules[spec.name]


def stored(name):
    if name == "drifting_cells":
        return tifffile.imread(SAMPLES / "drifting_cells" / "drifting_cells.ome.tif")
    return np.stack([tifffile.imread(SAMPLES / "single_pages" / f"frame_{n}.tif") for n in range(1, 13)])


def truth(name):
    with (SAMPLES / "truth.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["stack"] == name]
    assert [int(row["frame"]) for row in rows] == list(range(len(rows)))
    return np.array([(float(row["dy"]), float(row["dx"])) for row in rows])


def best_whole_shift(reference, frame, reach):
    """Whole-pixel shift to add to ``frame``, by trying them all: highest correlation coefficient of the overlap."""
    height, width = reference.shape
    scores = {}
    for dy in range(-reach, reach + 1):
        for dx in range(-reach, reach + 1):
            # reference[y, x] against frame[y - dy, x - dx] wherever both exist.
            ours = reference[max(dy, 0) : height + min(dy, 0), max(dx, 0) : width + min(dx, 0)]
            theirs = frame[max(-dy, 0) : height + min(-dy, 0), max(-dx, 0) : width + min(-dx, 0)]
            scores[dy, dx] = np.corrcoef(ours.ravel(), theirs.ravel())[0, 1]
    return max(scores, key=scores.get)


@pytest.mark.parametrize("name", ["drifting_cells", "single_pages"])
def test_script_makes_the_stored_pixels_and_table(made, name):
    frames, displacement = made[name]
    assert np.array_equal(stored(name), frames)
    assert stored(name).dtype == frames.dtype
    np.testing.assert_array_equal(truth(name), -displacement)


@pytest.mark.parametrize(("name", "chosen"), [("drifting_cells", (0, 7, 25, 52, 59)), ("single_pages", (0, 3, 6, 11))])
def test_truth_is_what_to_add_to_a_frame(name, chosen):
    frames, shifts = stored(name).astype(np.float64), truth(name)
    for t in chosen:
        found = np.array(best_whole_shift(frames[0], frames[t], reach=9))
        assert np.abs(found - shifts[t]).max() <= 0.7, (t, found, shifts[t])


def test_movie_carries_its_metadata_and_series_is_unpadded():
    with tifffile.TiffFile(SAMPLES / "drifting_cells" / "drifting_cells.ome.tif") as tif:
        assert tif.is_ome
        assert (tif.series[0].axes, tif.series[0].shape) == ("TYX", (60, 160, 176))
        pixels = tifffile.xml2dict(tif.ome_metadata)["OME"]["Image"]["Pixels"]
    assert (pixels["PhysicalSizeX"], pixels["PhysicalSizeY"], pixels["TimeIncrement"]) == (0.325, 0.325, 2.0)
    assert pixels["Channel"]["Name"] == "membrane-GFP"
    names = sorted(path.name for path in (SAMPLES / "single_pages").iterdir())
    assert names[:3] == ["frame_1.tif", "frame_10.tif", "frame_11.tif"]
    assert len(names) == 12
