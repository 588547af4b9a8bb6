"""Shifts refined over the whole overlap: exact on clean texture, as good as the plane in noise, harmless elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts

PLACES = np.array([(0, 0), (0.37, -0.21), (5.5, -3.49), (-8.12, 0.5), (2, 3), (-0.94, 7.75)])


@pytest.fixture(scope="module")
def speckle():
    """Fine texture: neighbouring pixels correlate to 0.6, and a polynomial through the peak is off by 0.01 px."""
    return drifting(PLACES, shape=(97, 110), width=0.12)


@pytest.mark.parametrize("dtype", [np.float32, np.uint16])
@pytest.mark.parametrize("reference", ["first", "last", 2, "previous", "template", "image"])
def test_every_reference(xp, speckle, reference, dtype):
    stack = (speckle * 1000 + 20000).astype(dtype)
    against = xp.asarray(stack[3]) if reference == "image" else reference
    result = estimate_shifts(xp.asarray(stack), against, 20, subpixel="phase", contrast="none", verify="all")
    # Frames that meet a blend of others are as good as its interpolation and edges.
    tolerance = 0.02 if reference == "template" else 1e-3
    np.testing.assert_allclose(result.shifts - result.shifts[0], -PLACES, atol=tolerance)
    assert result.difference.max() < 1e-4
    assert result.flags == ((),) * len(PLACES)


@pytest.mark.parametrize("options", [{"roi": (slice(7, 90), slice(11, 100))}, {"prefilter": "gaussian:1"}])
def test_part_of_a_frame_and_filtered_frames(xp, speckle, options):
    result = estimate_shifts(xp.asarray(speckle), "first", 12, subpixel="phase", contrast="none", **options)
    np.testing.assert_allclose(result.shifts, -PLACES, atol=1e-3)


@pytest.mark.parametrize("deviation", [0.3, 1.0, 2.0])
def test_in_noise_it_is_as_good_as_the_plane_that_is_weighted(xp, deviation):
    places = np.random.default_rng(4).uniform(-6, 6, size=(12, 2))
    places[0] = 0
    clean = drifting(places, shape=(160, 176), width=0.06, seed=8)
    stack = xp.asarray(clean + noise(clean, deviation))
    results = [
        estimate_shifts(stack, "first", 12, subpixel=method, contrast="none") for method in ("gaussian", "phase")
    ]
    errors = [np.sqrt(np.mean((result.shifts + places)[1:] ** 2)) for result in results]
    assert errors[1] < 1.3 * errors[0]
    assert errors[1] < 2 * np.sqrt(np.mean(results[1].sigma[1:] ** 2))
