"""What aligned frames leave: of one scene noise alone, of two the other one. After noise, nothing is searched for."""

from __future__ import annotations

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts
from xcorr_app.registration.pattern import static_pattern
from xcorr_app.registration.pattern.layers import gains
from xcorr_app.registration.pattern.one_layer import left_over

COUNT, SHAPE = 7, (149, 163)
PHASE = np.arange(COUNT) / (COUNT - 1)
DRIFT = np.stack([7.3 * np.sin(3.1 * PHASE), 4.6 * (np.cos(4 * PHASE) - 1)], axis=1)


def series(deviation, seed=1, drift=DRIFT):
    clean = drifting(drift, SHAPE, width=0.05, seed=seed)
    return clean + noise(clean, deviation, seed + 100)


@pytest.mark.parametrize("deviation", [0.05, 1.0])
@pytest.mark.parametrize("length", [0.1, 1.0])
def test_one_scene_leaves_noise(xp, deviation, length):
    ratios = []
    for seed in range(6):
        found = left_over(xp.asarray(series(deviation, seed, length * DRIFT)), -length * DRIFT)
        assert found.is_little
        ratios.append(found.share / max(found.chance, 1e-4))
    assert np.sqrt(np.mean(np.square(ratios))) < 2


def test_light_that_changes_is_not_left(xp):
    light = (1 + 0.3 * np.sin(5 * PHASE))[:, None, None]
    assert left_over(xp.asarray(series(0.05) * light), -DRIFT).is_little


@pytest.mark.parametrize("deviation", [0.05, 1.0])
@pytest.mark.parametrize("length", [0.2, 1.0])
def test_a_scene_that_bleaches_is_one_scene(xp, deviation, length):
    """Its faint frames are not made as bright as the others without the noise that comes with it."""
    ratios = []
    for seed in range(6):
        clean = drifting(length * DRIFT, SHAPE, width=0.05, seed=seed)
        frames = clean * np.exp(-2 * PHASE)[:, None, None] + noise(clean, deviation, seed + 100)
        found = left_over(xp.asarray(frames), -length * DRIFT)
        assert found.is_little
        ratios.append(found.share / max(found.chance, 1e-4))
    assert np.sqrt(np.mean(np.square(ratios))) < 2


def test_gains_are_those_of_one_scene():
    rng = np.random.default_rng(5)
    true = rng.uniform(0.2, 2, 6)
    products = np.outer(true, true) * 37.0 + np.diag(rng.uniform(0, 500, 6))
    np.testing.assert_allclose(gains(products), true / true.mean(), rtol=1e-3)


def test_a_frame_that_outshines_all_others_leaves_gains_finite(rng):
    scene = rng.normal(size=900)
    frames = np.array([1.0, 1.3, 1e30, 1e-30])[:, None] * scene + rng.normal(size=(4, 900)) * [
        [1e-4],
        [1e-4],
        [1e26],
        [0],
    ]
    found = gains(frames @ frames.T)
    assert np.isfinite(found).all()
    assert found.argmax() == 2


def test_wrong_shifts_leave_the_slope_of_the_scene(xp):
    wrong = -DRIFT.copy()
    wrong[3, 0] += 0.5
    frames = series(0.05)
    found = left_over(xp.asarray(frames), wrong)
    slope = np.gradient(frames[0], axis=0).var() / frames[0].var()
    # Of one frame in all, less what it is of the mean; over the frames but one.
    expected = 0.25 * slope * (1 - 1 / COUNT) / (COUNT - 1)
    assert found.share == pytest.approx(expected, rel=0.25)
    assert not found.is_little


@pytest.mark.parametrize("kind", ["rows", "columns", "pixels"])
@pytest.mark.parametrize("deviation", [0.05, 1.0])
def test_what_stands_still_is_left(xp, kind, deviation):
    shape = {"rows": (SHAPE[0], 1), "columns": (1, SHAPE[1]), "pixels": SHAPE}[kind]
    still = np.random.default_rng(4).normal(size=shape)
    strength = 0.2
    found = left_over(xp.asarray(series(deviation) + strength * still), -DRIFT)
    assert not found.is_little
    assert found.static == pytest.approx(strength**2, rel=0.5)


def test_nothing_is_said_of_what_is_too_small():
    frames = np.random.default_rng(0).normal(size=(4, 30, 20))
    assert not left_over(frames, np.zeros((4, 2))).is_little
    assert not left_over(np.zeros((4, 60, 60)), np.zeros((4, 2))).is_little


@pytest.mark.parametrize("deviation", [0.05, 0.7])
def test_a_plain_series_is_searched_for_nothing(deviation, monkeypatch):
    """By whole pixels such a scene leaves more than a pattern would: fractions tell."""
    searched = []
    for name in ("search_pattern", "in_turns", "shares", "fitted_together"):
        monkeypatch.setattr(static_pattern, name, lambda *_, name=name, **__: searched.append(name))
    monkeypatch.setattr(
        "xcorr_app.registration.stack_measurement.choose_contrast", lambda *_: searched.append("contrast")
    )
    result = estimate_shifts(series(deviation), "first", 12)
    assert searched == []
    assert np.abs(result.shifts + DRIFT).max() < 0.2
