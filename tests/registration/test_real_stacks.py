"""Real stacks whose shifts are known, with default options."""

import numpy as np
import pytest
import tifffile

from xcorr_app import estimate_shifts
from xcorr_app.io.names import natural_path_key
from xcorr_app.registration.quality import is_trusted


def read(paths):
    return np.stack([tifffile.imread(path) for path in paths])


@pytest.mark.share(3)
@pytest.mark.parametrize("max_shift", [None, 20])
@pytest.mark.parametrize(
    ("method", "tolerance"), [("gaussian", 1e-4), ("quadratic", 1e-4), ("parabolic", 1e-4), ("phase", 1e-5)]
)
def test_speckle_moved_by_whole_pixels(xp, shared_data, method, tolerance, max_shift):
    folder = shared_data / "dice_pixel_shift"
    paths = sorted(folder.glob("def_*.tif"), key=natural_path_key)
    stack = xp.asarray(read([folder / "ref.tif", *paths]))
    result = estimate_shifts(stack, "first", max_shift, subpixel=method, verify="all")
    k = np.arange(len(paths) + 1)
    assert len(paths) == 15
    np.testing.assert_allclose(result.shifts, -np.stack([k, k], axis=1), atol=tolerance)
    assert result.flags == ((),) * 16
    assert result.difference.max() < 1e-3


@pytest.mark.parametrize(("subpixel", "tolerance"), [("gaussian", 0.006), ("phase", 5e-4)])
def test_speckle_with_a_change_of_contrast_and_noise(shared_data, subpixel, tolerance):
    folder = shared_data / "dic_sample5"
    paths = [*folder.glob("*Reference.tif"), *folder.glob("*-000 *.tif"), *folder.glob("*-001 *.tif")]
    result = estimate_shifts(read(paths), subpixel=subpixel)
    np.testing.assert_allclose(result.shifts, [(0, 0), (0, 0), (-0.1, -0.1)], atol=tolerance)
    assert result.flags == ((),) * 3


def test_cells_within_a_third_of_a_pixel_of_turboreg(shared_data):
    stack = tifffile.imread(shared_data / "pc12" / "pc12-unreg.tif")
    turboreg = [(0, 0), (8.52, -0.09), (13.67, 0.12), (15.32, 0.85), (12.45, -0.33)]
    result = estimate_shifts(stack, "first")
    np.testing.assert_allclose(result.shifts, turboreg, atol=0.3)
    assert all(is_trusted(flags) for flags in result.flags)


def test_a_dividing_cell_is_not_followed_with_confidence(shared_data):
    paths = sorted((shared_data / "mitosis_folder").glob("*_t*.tif"), key=natural_path_key)
    assert [int(path.stem.rpartition("_t")[2]) for path in paths] == list(range(51))
    result = estimate_shifts(read(paths), "first")
    moved = np.hypot(*result.shifts.T) > 2
    assert moved.sum() > 30
    assert [t for t in np.flatnonzero(moved) if is_trusted(result.flags[t])] == []


def test_mean_of_a_displacement_that_varies_across_the_frame(shared_data):
    folder = shared_data / "dic_sample14"
    # Column of pixels, then displacement along x (pixels) and strain for L1, L3 and L5.
    exact = np.loadtxt(folder / "sample14_exact.csv", delimiter=",")
    names = ["Sample14 Reference.tif", *(f"Sample14 L{level} Amp0.1b.tif" for level in (1, 3, 5))]
    result = estimate_shifts(read([folder / name for name in names]))
    assert exact.shape == (2048, 7)
    expected = np.zeros((4, 2))
    expected[1:, 1] = -exact[:, [1, 3, 5]].mean(axis=0)  # what was moved by u is moved back by -u
    np.testing.assert_allclose(result.shifts, expected, atol=0.02)


def test_every_frame_of_a_two_photon_movie_is_trusted(shared_data):
    """Few photons, and lines that move within a frame: by a hidden Markov model, line by line, within 0.55 px."""
    folder = shared_data / "sima_2p"
    stack = tifffile.imread(folder / "example.tif").reshape(20, 128, 256)
    result = estimate_shifts(stack)
    assert all(is_trusted(flags) for flags in result.flags)
    known = np.loadtxt(folder / "shifts_hmm.csv", delimiter=",", skiprows=1)[:, 1:]
    assert np.hypot(*(result.shifts - known).T).mean() < 0.55
