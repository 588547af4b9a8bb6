"""Gains of one scene, and what aligned frames leave."""

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise
from xcorr_app.registration.pattern.one_layer import gains, left_over

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


@pytest.mark.parametrize("kind", ["rows", "columns", "pixels"])
@pytest.mark.parametrize("deviation", [0.05, 1.0])
def test_what_stands_still_is_left(xp, kind, deviation):
    shape = {"rows": (SHAPE[0], 1), "columns": (1, SHAPE[1]), "pixels": SHAPE}[kind]
    still = np.random.default_rng(4).normal(size=shape)
    strength = 0.2
    found = left_over(xp.asarray(series(deviation) + strength * still), -DRIFT)
    assert not found.is_little
    assert found.static == pytest.approx(strength**2, rel=0.5)


def test_gains_of_one_scene(rng):
    scene, bright = rng.normal(size=4000), np.array([0.5, 1.0, 2.0, 0.7])
    frames = bright[:, None] * scene + 0.3 * rng.normal(size=(4, 4000))
    np.testing.assert_allclose(gains(frames @ frames.T), bright / bright.mean(), rtol=0.03)


@pytest.mark.parametrize("scales", [[1, 1, 1e30, 1e-30], [1, 1e150, 1, 1], [1e-160, 1, 1, 1]])
def test_a_frame_brighter_by_all_digits_overflows_nothing(rng, scales):
    frames = np.array(scales)[:, None] * (rng.normal(size=4000) + 0.1 * rng.normal(size=(4, 4000)))
    found = gains(frames @ frames.T)
    assert np.isfinite(found).all()
    assert (found > 0).all()
