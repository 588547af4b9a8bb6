"""What decides whether a scientist trusts it; sample data whose truth is known."""

import csv
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
import tifffile

from tests.registration.scenes import drifting
from xcorr_app import cross_correlate, estimate_shifts
from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.registration.quality import is_trusted


def worst(result, displacements):
    """Largest error of any frame in pixels."""
    return np.hypot(*(result.shifts + displacements).T).max()


def test_point_1_the_default_is_zero_mean_normalised_correlation(xp):
    stack = xp.asarray(drifting([(0, 0), (2.3, -3.1)]))
    by_default = estimate_shifts(stack, max_shift=8)
    np.testing.assert_array_equal(by_default.shifts, estimate_shifts(stack, max_shift=8, normalization="zncc").shifts)
    plane = to_host(cross_correlate(stack[0], stack[1], max_shift=8))
    assert by_default.score[1] >= plane.max() - 1e-6
    assert np.nanmax(np.abs(plane)) <= 1


def test_point_1_a_static_noisy_smooth_scene_stands_still(xp):
    stack = xp.asarray(drifting(np.zeros((10, 2)), shape=(96, 96), width=0.02, noisy=1.0))
    assert worst(estimate_shifts(stack, "first", 24), 0) < 0.8
    assert worst(estimate_shifts(stack, "first", 24, normalization="phase"), 0) > 5


def test_point_1_a_drifting_smooth_scene_is_not_pulled_to_zero(xp):
    displacements = np.array([(0, 0), (3, -4), (-6, 5), (8, 8)], dtype=float)
    stack = xp.asarray(drifting(displacements, shape=(96, 96), width=0.015, noisy=0.3))
    assert worst(estimate_shifts(stack, "first", 24), displacements) < 0.8
    assert worst(estimate_shifts(stack, "first", 24, normalization="none"), displacements) > 2


@pytest.mark.parametrize("reference", ["mean", "template"])
def test_point_2_a_frame_does_not_vote_for_itself(xp, rng, reference):
    stack = rng.normal(size=(8, 64, 64))  # nothing but noise: any shift is as good as zero
    naive = estimate_shifts(xp.asarray(stack), xp.asarray(stack.mean(axis=0)), 12)
    assert np.hypot(*naive.shifts.T).max() < 1  # every frame locks to itself in the mean
    result = estimate_shifts(xp.asarray(stack), reference, 12)
    spread = result.shifts - np.median(result.shifts, axis=0)
    assert (np.hypot(*spread.T) > 2).sum() >= 6
    # Where no two frames can be trusted to make a template of, one is the reference, and it lies on itself.
    itself = "frame (" in result.reference
    assert sum(is_trusted(flags) for flags in result.flags) <= itself


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


@pytest.mark.parametrize("name", ["drifting_cells", "single_pages"])
def test_script_makes_the_stored_pixels_and_table(made, name):
    frames, displacement = made[name]
    assert np.array_equal(stored(name), frames)
    assert stored(name).dtype == frames.dtype
    np.testing.assert_array_equal(truth(name), -displacement)


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
