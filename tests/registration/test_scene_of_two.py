"""Something large crosses the scene: which of the two motions is the scene's."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.conditions import make_series
from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts
from xcorr_app.registration.parts.two_scenes import are_two, from_line, may_lie_off, stands_behind

COUNT, SHAPE = 16, (144, 176)


def crossed(seed, contrast=5.0, radius=46):
    """A scene that drifts, and a disc of a contrast of its own that crosses it; shifts to be measured."""
    rng, steps = np.random.default_rng(seed), np.arange(COUNT)[:, None]
    drift = steps * rng.uniform(-0.2, 0.2, 2) + rng.normal(0, 0.1, (COUNT, 2))
    drift -= drift[0]
    way = steps * np.array([0.4, 2.6])
    scene = drifting(drift, SHAPE, width=0.08, seed=10 * seed)
    disc = contrast * drifting(way % 40, SHAPE, width=0.08, seed=10 * seed + 1)
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    middle = np.array([SHAPE[0] / 2, 60.0]) + way
    inside = np.stack([np.hypot(y - cy, x - cx) < radius for cy, cx in middle])
    return np.where(inside, disc, scene) + noise(scene, 0.3, seed), -drift


@pytest.mark.share(3)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_large_object_that_crosses_a_faint_scene_is_not_followed(seed):
    stack, shifts = crossed(seed)
    result = estimate_shifts(stack.astype(np.float32), "first", 48)
    off = np.hypot(*(result.shifts - shifts).T) > 0.5
    assert not (off & result.trusted).any()
    assert result.trusted.mean() > 0.7
    assert not any(note.startswith("A fixed pattern") for note in result.notes)


def test_a_pattern_that_stands_still_is_not_taken_for_something_that_crosses():
    """Of columns and spots of a scene's own contrast, some lie side by side with it, each with a motion of its own."""
    series = make_series("spots", 20.0, 8, 112, condition="pattern")
    result = estimate_shifts(series.frames, "first", 24)
    assert any(note.startswith("A fixed pattern") for note in result.notes)
    np.testing.assert_allclose(result.shifts, series.shifts, atol=0.02)
    assert result.trusted.all()


def tiles_of(which):
    """(1, 6, 8) tiles that agree, or differ."""
    return np.where(which, 1, 0).astype(np.float32)[None]


def test_what_reaches_the_rim_is_the_scene():
    inside = np.zeros((6, 8), dtype=bool)
    inside[1:5, 2:6] = True
    behind, before = tiles_of(~inside), tiles_of(inside)
    assert stands_behind(behind, before).all()
    assert not stands_behind(before, behind).any()


def test_what_is_seen_on_most_sides_of_the_other_is_the_scene():
    """Also where an object that reaches one side alone fills as much of the rim."""
    scene, thing = np.zeros((2, 6, 8), dtype=bool)
    scene[0, 6:] = scene[2:4, 6:] = scene[5, 6:] = True
    thing[1:5, :2] = thing[:, 0] = True
    behind, before = tiles_of(scene), tiles_of(thing)
    assert stands_behind(behind, before).all()
    assert not stands_behind(before, behind).any()


def test_halves_of_a_picture_are_not_told_apart():
    left = np.arange(8) < 4 + np.zeros((6, 1))
    one, other = tiles_of(left), tiles_of(~left)
    assert not stands_behind(one, other).any()
    assert not stands_behind(other, one).any()
    assert are_two(one, other, np.zeros((1, 2)), np.full((1, 2), 5.0)).all()
    assert not are_two(one, other, np.zeros((1, 2)), np.full((1, 2), 0.5)).any()
    assert not are_two(one, one, np.zeros((1, 2)), np.full((1, 2), 5.0)).any()


def test_distance_from_the_line_between_frames_that_were_told(rng):
    line = np.arange(9)[:, None] * np.array([1.0, -0.5])
    told = np.isin(np.arange(9), (1, 2, 4, 6))
    shifts = line.copy()
    shifts[3] += (3, 4)
    distance = from_line(shifts, np.where(told[:, None], line, rng.normal(size=(9, 2))), told)
    np.testing.assert_allclose(distance[1:7], [0, 0, 5, 0, 0, 0], atol=1e-12)
    allowed = may_lie_off(line, told)
    assert np.isinf(allowed[[0, 7, 8]]).all()
    assert (distance > allowed).nonzero()[0].tolist() == [3]
