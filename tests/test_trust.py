"""What decides whether a scientist trusts a registration: the points that concern measuring and moving, one test each.

The rival methods are shown to fail on the same images, so that each test is known to be hard.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise
from xcorr_app import apply_shifts, cross_correlate, estimate_shifts
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


def test_point_1_unnormalised_correlation_of_counts_prefers_bright_places(xp, rng):
    # The plain sums follow brightness, not the scene: a static scene with a bright rim seems to have moved.
    _, x = np.indices((64, 64))
    scene = 100 + 3 * drifting([(0, 0)], shape=(64, 64), width=0.05)[0] + 0.5 * x + 60 * (x > 56)
    frames = np.stack([scene, scene + rng.normal(size=scene.shape)])
    small = frames[1][16:48, 16:48]
    planes = {
        n: to_host(cross_correlate(xp.asarray(frames[0]), xp.asarray(small), normalization=n)) for n in ("zncc", "none")
    }
    places = {n: np.array(np.unravel_index(np.nanargmax(p), p.shape)) - 31 for n, p in planes.items()}
    np.testing.assert_array_equal(places["zncc"], (16, 16))
    assert np.abs(places["none"] - 16).max() > 5


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


def test_point_3_a_drift_beyond_the_window_is_flagged_as_edge(xp):
    displacements = np.array([(0, 0), (3, 2), (7, 0), (0, -8), (9, 9)], dtype=float)
    result = estimate_shifts(xp.asarray(drifting(displacements, width=0.02)), "first", 5)
    assert ["edge" in flags for flags in result.flags] == [False, False, True, True, True]
    assert [is_trusted(flags) for flags in result.flags] == [True, True, False, False, False]


def test_point_3_a_sum_of_steps_is_not_trusted_after_a_step_that_is_not(xp):
    places = np.array([(0, 0), (1, 1), (2, 0), (12, 3), (13, 3), (12, 4)], dtype=float)
    result = estimate_shifts(xp.asarray(drifting(places, width=0.02)), "previous", 5)
    assert "edge" in result.flags[3]  # the fourth frame moved farther than the window
    assert [is_trusted(flags) for flags in result.flags] == [True, True, True, False, False, False]


def test_point_3_a_lattice_that_fits_twice_is_ambiguous(xp):
    y, x = np.indices((96, 96))
    stack = np.stack([np.cos(np.pi * (y - d) / 5) + np.cos(np.pi * (x + d) / 5) for d in (0, 2, 4)])
    result = estimate_shifts(xp.asarray(stack + noise(stack, 0.2)), "first", 16)
    assert all("ambiguous" in flags for flags in result.flags)
    assert (result.peak_ratio < 1.1).all()
    once = estimate_shifts(xp.asarray(stack + noise(stack, 0.2)), "first", 4)
    assert not any("ambiguous" in flags for flags in once.flags)


def test_point_3_unrelated_frames_have_a_low_score(xp, rng):
    scenes = np.concatenate([drifting([(0, 0)], width=0.1, shape=(96, 96), seed=s) for s in range(12)])
    for stack in (scenes, scenes + noise(scenes, 1.0), rng.normal(size=scenes.shape)):
        result = estimate_shifts(xp.asarray(stack), "first", 16)
        assert result.score[0] == pytest.approx(1, abs=1e-4)
        assert all("low-score" in flags for flags in result.flags[1:])


def test_point_3_every_measured_frame_has_a_score_and_a_ratio(xp):
    displacements = np.array([(0, 0), (3, 2), (-2, 1.5)])
    result = estimate_shifts(xp.asarray(drifting(displacements)), "first", 8)
    assert (np.abs(result.score) <= 1).all()
    assert (result.score > 0.9).all()
    assert (result.peak_ratio > 1.1).all()


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "float32", "float64"])
@pytest.mark.parametrize("order", [0, 1, 3, "fourier"])
def test_point_4_moving_changes_nothing_unasked(xp, rng, dtype, order):
    stack = (20 + 200 * rng.random((3, 24, 30))).astype(dtype)
    given = xp.asarray(stack.copy())
    moved = apply_shifts(given, [(0, 0), (2, -3), (0.5, 0.25)], interpolation=order)
    assert type(moved) is type(given)
    moved = to_host(moved)
    assert moved.dtype == stack.dtype
    assert moved.shape == stack.shape
    np.testing.assert_array_equal(to_host(given), stack)
    np.testing.assert_array_equal(moved[0], stack[0])
    np.testing.assert_array_equal(moved[1, 2:, :-3], stack[1, :-2, 3:])  # whole pixels are copied
    assert (moved[1, :2] == 0).all()  # and nothing wraps around
    assert (moved[1, :, -3:] == 0).all()
    inside = moved[2, 6:-6, 6:-6].astype(float)
    assert abs(inside.mean() - stack[2, 6:-6, 6:-6].mean()) < 10  # nothing is rescaled


def test_a_measured_stack_lands_on_its_reference(xp):
    displacements = np.array([(0, 0), (2.25, -1.5), (-3.4, 4.1)])
    stack = xp.asarray(drifting(displacements))
    moved = to_host(apply_shifts(stack, estimate_shifts(stack, "first", 8).shifts, interpolation=3))
    inner = (slice(None), slice(8, -8), slice(8, -8))
    np.testing.assert_allclose(moved[inner], np.broadcast_to(to_host(stack)[0], moved.shape)[inner], atol=0.1)
