"""Changes that go with the scene bend coarse parts of it otherwise than fine ones: standard errors say so."""

from __future__ import annotations

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts
from xcorr_app.registration import second_looks

COUNT, SHAPE = 16, (141, 152)
PHASE = np.arange(COUNT) / (COUNT - 1)
DRIFT = np.stack([7 * np.sin(2 * PHASE), -9 * PHASE], axis=1)


def trailing(strength, seed):
    """A scene of coarse and fine parts; from the second frame on, a trail to the right of all that is bright."""
    fine = drifting(DRIFT, SHAPE, width=0.12, seed=seed)
    clean = 3 * drifting(DRIFT, SHAPE, width=0.03, seed=seed + 1) + fine
    trail = np.cumsum(clean - clean.mean(axis=2, keepdims=True), axis=2)
    trail[0] = 0
    return 100 + 10 * clean + strength * trail + noise(clean, 3.0, seed + 2)


def without_asking(monkeypatch, stack):
    monkeypatch.setattr(second_looks, "disagreement", lambda *_, **__: np.zeros((COUNT, 2)))
    return estimate_shifts(stack, "first", 20)


@pytest.mark.share(4)
@pytest.mark.parametrize("strength", [0.05, 0.1])
@pytest.mark.parametrize("seed", [1, 4])
def test_what_goes_with_the_scene_is_in_standard_errors(monkeypatch, strength, seed):
    stack = trailing(strength, seed)
    result = estimate_shifts(stack, "first", 20)
    error = np.abs(result.shifts + DRIFT)[1:]
    # By local contrast, which some of these are measured by, it is about half of the error.
    locally = any("local contrast" in note for note in result.notes)
    assert (error < 2 * result.sigma[1:]).mean() > (0.4 if locally else 0.85)
    before = without_asking(monkeypatch, stack)
    np.testing.assert_array_equal(before.shifts, result.shifts)
    assert (error[:, 1] < 2 * before.sigma[1:, 1]).mean() < 0.3


@pytest.mark.parametrize("strength", [0.0, 0.05])
def test_it_is_asked_where_frames_leave_something(monkeypatch, strength):
    asked, real = [], second_looks.disagreement
    monkeypatch.setattr(second_looks, "disagreement", lambda *a, **k: asked.append(real(*a, **k)) or asked[-1])
    estimate_shifts(trailing(strength, 1), "first", 20)
    assert bool(asked) == (strength > 0)


def test_chance_leaves_standard_errors(monkeypatch):
    """Of spots that are lit or not: frames differ, but not one scale from another."""
    rng = np.random.default_rng(3)
    stack = 100 + 10 * drifting(DRIFT, SHAPE, width=0.08) + noise(np.empty((COUNT, *SHAPE)), 2.0)
    for t in range(COUNT):
        for y, x in rng.integers(20, 120, (6, 2)):
            stack[t, y : y + 5, x : x + 5] += 40
    result = estimate_shifts(stack, "first", 20)
    np.testing.assert_array_equal(without_asking(monkeypatch, stack).sigma, result.sigma)
