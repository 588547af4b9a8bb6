"""Shifts refined over the whole overlap: exact on clean texture, as good as the plane in noise, harmless elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
import tifffile

from tests.registration.scenes import drifting, noise
from tests.registration.test_real_stacks import in_natural_order, read
from xcorr_app import estimate_shifts
from xcorr_app.registration.measuring.icgn import Template, refine_shifts

PLACES = np.array([(0, 0), (0.37, -0.21), (5.5, -3.49), (-8.12, 0.5), (2, 3), (-0.94, 7.75)])


@pytest.fixture(scope="module")
def speckle():
    """Fine texture: neighbouring pixels correlate to 0.6, and a polynomial through the peak is off by 0.01 px."""
    return drifting(PLACES, shape=(97, 110), width=0.12)


def test_finds_exact_displacements_whatever_gain_and_offset(xp, rng, speckle):
    start = -PLACES + rng.uniform(-0.2, 0.2, PLACES.shape)
    template = Template(xp.asarray(speckle[:1]), None)
    gain = np.array([1, 0.2, 3, 0.7, 40, 1])[:, None, None]
    refined = refine_shifts(template, xp.asarray(speckle * gain + 10 * gain), start)
    assert refined.settled.all()
    np.testing.assert_allclose(refined.shift, -PLACES, atol=5e-4)
    assert refined.shift.dtype == np.float64


def test_what_cannot_be_refined_is_untouched_to_the_last_bit(xp, rng, speckle):
    stripes = np.broadcast_to(np.sin(np.arange(110)), (97, 110))
    frames = np.stack([rng.normal(size=(97, 110)), np.zeros((97, 110)), stripes, speckle[1], -speckle[1], speckle[1]])
    start = np.array([(1.23, 4), (0.5, 0.5), (0.1, 0.1), (np.nan, np.nan), -PLACES[1], (30.25, 0)])
    refined = refine_shifts(Template(xp.asarray(speckle[:1]), None), xp.asarray(frames), start)
    np.testing.assert_array_equal(refined.shift[~refined.settled], start[~refined.settled])
    np.testing.assert_array_equal(refined.settled[[1, 3, 4, 5]], False)
    assert np.nanmax(np.abs(refined.shift - start)) <= 0.5
    along_one = refine_shifts(Template(xp.asarray(stripes[None]), None), xp.asarray(frames[2:3]), start[2:3])
    assert not along_one.settled.any()


@pytest.mark.parametrize("shape", [(1, 1), (15, 40), (40, 15), (16, 40), (17, 17), (20, 21)])
def test_small_images_are_left_alone(xp, shape):
    frames = xp.asarray(drifting([(0, 0), (0.3, 0.2)], shape=shape))
    start = np.array([(0.1, 0.0), (-0.25, -0.25)])
    refined = refine_shifts(Template(frames[:1], None), frames, start)
    assert not refined.settled.any()
    np.testing.assert_array_equal(refined.shift, start)


@pytest.mark.parametrize("dtype", [np.float32, np.uint16])
@pytest.mark.parametrize("reference", ["first", "last", 2, "previous", "template", "image"])
def test_every_reference(xp, speckle, reference, dtype):
    stack = (speckle * 1000 + 20000).astype(dtype)
    against = xp.asarray(stack[3]) if reference == "image" else reference
    result = estimate_shifts(xp.asarray(stack), against, 20, subpixel="icgn", contrast="none", verify="all")
    # Frames that meet a blend of others are as good as its interpolation and edges.
    tolerance = 0.02 if reference == "template" else 1e-3
    np.testing.assert_allclose(result.shifts - result.shifts[0], -PLACES, atol=tolerance)
    assert result.difference.max() < 1e-4
    assert result.flags == ((),) * len(PLACES)
    assert not any("icgn" in note for note in result.notes)


@pytest.mark.parametrize("options", [{"roi": (slice(7, 90), slice(11, 100))}, {"prefilter": "gaussian:1"}])
def test_part_of_a_frame_and_filtered_frames(xp, speckle, options):
    result = estimate_shifts(xp.asarray(speckle), "first", 12, subpixel="icgn", contrast="none", **options)
    np.testing.assert_allclose(result.shifts, -PLACES, atol=1e-3)


@pytest.mark.parametrize("deviation", [0.3, 1.0, 2.0])
def test_in_noise_it_is_as_good_as_the_plane_that_is_weighted(xp, deviation):
    places = np.random.default_rng(4).uniform(-6, 6, size=(12, 2))
    places[0] = 0
    clean = drifting(places, shape=(160, 176), width=0.06, seed=8)
    stack = xp.asarray(clean + noise(clean, deviation))
    results = [estimate_shifts(stack, "first", 12, subpixel=method, contrast="none") for method in ("gaussian", "icgn")]
    errors = [np.sqrt(np.mean((result.shifts + places)[1:] ** 2)) for result in results]
    assert not any("icgn" in note for note in results[1].notes)
    assert errors[1] < 1.3 * errors[0]
    assert errors[1] < 2 * np.sqrt(np.mean(results[1].sigma[1:] ** 2))


def test_speckle_moved_by_whole_pixels(xp, shared_data):
    folder = shared_data / "dice_pixel_shift"
    paths = in_natural_order(folder, "def_*.tif")
    stack = read([folder / "ref.tif", *paths])
    result = estimate_shifts(xp.asarray(stack), "first", 20, subpixel="icgn", verify="all")
    k = np.arange(len(stack))
    np.testing.assert_allclose(result.shifts, -np.stack([k, k], axis=1), atol=1e-5)
    assert result.flags == ((),) * len(stack)


def test_speckle_with_a_change_of_contrast_and_noise(xp, shared_data):
    folder = shared_data / "dic_sample5"
    names = ("*Reference.tif", "*-000 *.tif", "*-001 *.tif")
    stack = np.stack([tifffile.imread(next(folder.glob(name))) for name in names])
    result = estimate_shifts(xp.asarray(stack), "first", 8, subpixel="icgn", verify="all")
    np.testing.assert_allclose(result.shifts, [(0, 0), (0, 0), (-0.1, -0.1)], atol=5e-4)
    assert result.difference.max() < 1e-4
