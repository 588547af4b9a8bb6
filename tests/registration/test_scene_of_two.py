"""Something large crosses the scene: which of the two motions is the scene's."""

import numpy as np
import pytest

from benchmarks.board import scenes
from benchmarks.conditions import make_series
from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts

COUNT, SHAPE = 16, (144, 176)


def occluded(seed, contrast=5.0, radius=46):
    """A scene that drifts, and a disc of a contrast of its own that crosses it; shifts to be measured."""
    rng, steps = np.random.default_rng(seed), np.arange(COUNT)[:, None]
    drift = steps * rng.uniform(-0.2, 0.2, 2) + rng.normal(0, 0.1, (COUNT, 2))
    drift -= drift[0]
    way = steps * np.array([0.4, 2.6])
    scene = drifting(drift, SHAPE, width=0.08, seed=10 * seed)
    disc = contrast * drifting(way % 40, SHAPE, width=0.08, seed=10 * seed + 1)
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    inside = np.stack([np.hypot(y - cy, x - cx) < radius for cy, cx in way + np.array([SHAPE[0] / 2, 60])])
    return np.where(inside, disc, scene) + noise(scene, 0.3, seed), -drift


@pytest.mark.share(3)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_large_object_that_crosses_a_faint_scene_is_not_followed(seed):
    stack, shifts = occluded(seed)
    result = estimate_shifts(stack.astype(np.float32), "first", 48)
    off = np.hypot(*(result.shifts - shifts).T) > 0.5
    assert not (off & result.trusted).any()
    assert result.trusted.mean() > 0.7
    assert not any(note.startswith("A fixed pattern") for note in result.notes)


@pytest.mark.share(2)
@pytest.mark.parametrize("seed", [8, 13])
def test_a_disc_near_the_motion_of_the_scene_is_not_followed(seed):
    """Two pixels apart all tiles agree with one motion as well as with the other."""
    series = scenes.covered(np.random.default_rng([seed, 3040246324]), 0.33, 1.0, 5.0)
    result = estimate_shifts(series.frames)
    assert np.abs(result.applied() - series.shifts).max() < 0.06


def test_a_pattern_that_stands_still_is_not_taken_for_something_that_crosses():
    """Of columns and spots of a scene's own contrast, some lie side by side with it, each with a motion of its own."""
    series = make_series("spots", 20.0, 8, 112, condition="pattern")
    result = estimate_shifts(series.frames, "first", 24)
    assert any(note.startswith("A fixed pattern") for note in result.notes)
    np.testing.assert_allclose(result.shifts, series.shifts, atol=0.02)
    assert result.trusted.all()


@pytest.mark.share(2)
@pytest.mark.parametrize("seed", [3, 7])
def test_the_larger_of_two_parts_is_the_scene_and_no_pattern(seed):
    """Of two parts beside each other the one that hardly moves is a still layer as well, and leaves nothing."""
    way = np.arange(12)[:, None] * np.array([0.02, -0.02, 1.0, 0.3])
    stack, right = (drifting(drift, SHAPE, 0.12, 10 * seed + k) for k, drift in enumerate((way[:, :2], way[:, 2:])))
    stack[:, :, 106:] = right[:, :, 106:]
    result = estimate_shifts(100 + 30 * stack + noise(stack, 10.0, seed))
    assert np.abs(result.shifts + way[:, :2])[result.trusted].max() < 0.1
    assert result.trusted.mean() > 0.6


@pytest.mark.parametrize("seed", [1, 2])
def test_sections_that_differ_everywhere_move_as_one(seed):
    """A quarter of what each shows is its own: no part of it moves by itself, and all of it is sure."""
    drift = np.random.default_rng(seed).uniform(-20, 20, (6, 2))
    own = np.concatenate([drifting([(0, 0)], (200, 260), 0.1, 100 * seed + t) for t in range(6)])
    stack = drifting(drift, (200, 260), 0.06, 10 * seed) + 0.6 * own
    result = estimate_shifts(100 + 30 * stack + noise(stack, 1.0, seed))
    assert result.trusted.all()
    assert (np.abs(result.shifts + drift - drift[0]) < 4 * result.sigma + 1e-6).all()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_template_is_not_blurred_by_what_moves_otherwise(seed):
    """The mean of frames that are aligned by the scene bent the shifts by tenths of a pixel, without a flag."""
    stack, shifts = occluded(seed, contrast=1.0)
    found = estimate_shifts(stack, "template")
    error = found.shifts - shifts
    assert np.abs(error - np.median(error, axis=0))[found.trusted].max() < 0.1
    assert found.trusted.mean() > 0.8
    assert any("would blur a template" in note for note in found.notes)
