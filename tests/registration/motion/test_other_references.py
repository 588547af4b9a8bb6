"""Motion summed from frame to frame, and against the mean of the others."""

from __future__ import annotations

import numpy as np
import pytest

import xcorr_app as xc
from tests.registration.motion.test_motion import corner_errors, series


@pytest.mark.parametrize("model", ["rigid", "affine"])
@pytest.mark.parametrize("reference", ["previous", "template"])
def test_turns_are_found(model, reference):
    frames, truth = series(model, 5, 3, count=6, turn=0.3)
    found = xc.estimate_motion(frames, model, reference)
    assert found.trusted.all()
    assert corner_errors(found.matrices, truth, frames.shape[1:]).max() < 0.1
    errors = np.abs(found.shifts[1:] - xc.estimate_motion(frames, model).shifts[1:])
    assert (errors < 5 * found.sigma[1:] + 0.02).all()


def test_a_template_is_less_noisy_than_one_frame():
    """Against one frame all motions share its noise: what is between two others is known better by a template."""
    errors = {}
    for reference in ("first", "template"):
        squares = []
        for seed in range(3):
            frames, truth = series("rigid", 0.7, seed, shape=(120, 128), count=10, turn=0.1)
            found = xc.estimate_motion(frames, "rigid", reference).matrices
            # Between frames: each against the next.
            steps, true = (each[2:] @ np.linalg.inv(each[1:-1]) for each in (found, truth))
            squares.append(corner_errors(steps, true, frames.shape[1:]) ** 2)
        errors[reference] = np.sqrt(np.median(squares))
    assert errors["template"] < 1.05 * errors["first"]


def test_steps_lead_where_the_look_changes():
    frames, truth = series("rigid", 20, 5, count=6, turn=0.05)
    change = np.linspace(0, 1, 6)[:, None, None]
    found = xc.estimate_motion((1 - change) * frames + change * frames**3, "rigid", "previous")
    assert corner_errors(found.matrices, truth, frames.shape[1:]).max() < 0.3


def test_a_doubtful_step_makes_all_that_follow_doubtful():
    frames, _ = series("rigid", 20, 3, count=6, turn=0.05)
    frames[3] = np.random.default_rng(0).normal(size=frames.shape[1:])
    found = xc.estimate_motion(frames, "rigid", "previous")
    assert found.trusted[:3].all()
    assert not found.trusted[3:].any()
    assert "inherited" in found.flags[5]


def test_flat_frames_are_stepped_over():
    frames, truth = series("rigid", 20, 3, count=5, turn=0.05)
    frames[2] = 7
    for reference in ("previous", "template"):
        found = xc.estimate_motion(frames, "rigid", reference)
        assert found.flags[2] == ("flat",)
        known = [0, 1, 3, 4]
        assert corner_errors(found.matrices[known], truth[known], frames.shape[1:]).max() < 0.1


def test_the_mean_of_frames_as_they_are_serves_those_that_hardly_move():
    (scene, *_), _ = series("rigid", 5, 3, count=2)
    still = np.stack([scene + 0.2 * np.random.default_rng(t).normal(size=scene.shape) for t in range(5)])
    found = xc.estimate_motion(still, "rigid", "mean")
    assert found.trusted.all()
    assert np.abs(found.angle).max() < 0.1
    assert np.abs(found.shifts).max() < 0.05
