"""What decides whether a scientist trusts a registration: the points that concern measuring and moving, one test each.

The rival methods are shown to fail on the same images, so that each test is known to be hard.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise
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
    clean = drifting(np.zeros((10, 2)), shape=(96, 96), width=0.02)
    stack = xp.asarray(clean + noise(clean, 1.0))
    assert worst(estimate_shifts(stack, "first", 24), 0) < 0.8
    assert worst(estimate_shifts(stack, "first", 24, normalization="phase"), 0) > 5


def test_point_1_a_drifting_smooth_scene_is_not_pulled_to_zero(xp):
    displacements = np.array([(0, 0), (3, -4), (-6, 5), (8, 8)], dtype=float)
    clean = drifting(displacements, shape=(96, 96), width=0.015)
    stack = xp.asarray(clean + noise(clean, 0.3))
    assert worst(estimate_shifts(stack, "first", 24), displacements) < 0.8
    assert worst(estimate_shifts(stack, "first", 24, normalization="none"), displacements) > 2


@pytest.mark.parametrize("reference", ["mean", "median", "template"])
def test_point_2_a_frame_does_not_vote_for_itself(xp, rng, reference):
    stack = rng.normal(size=(8, 64, 64))  # nothing but noise: any shift is as good as zero
    naive = estimate_shifts(xp.asarray(stack), xp.asarray(stack.mean(axis=0)), 12)
    assert np.hypot(*naive.shifts.T).max() < 1  # every frame locks to itself in the mean
    result = estimate_shifts(xp.asarray(stack), reference, 12)
    spread = result.shifts - np.median(result.shifts, axis=0)
    assert (np.hypot(*spread.T) > 2).sum() >= 6
    # Where no two frames can be trusted to make a template of, one is the reference, and it lies on itself.
    itself = result.reference.startswith("only frame")
    assert sum(is_trusted(flags) for flags in result.flags) <= itself
