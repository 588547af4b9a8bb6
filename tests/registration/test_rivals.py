"""A few things that differ tell which period of a lattice it is; a perfect lattice stays ambiguous."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.registration.measuring.rivals import settled

COUNT, SHAPE, PERIOD = 9, (147, 155), 9.7
DRIFT = np.cumsum(np.random.default_rng(21).normal(0, 0.9, (COUNT, 2)), axis=0)
DRIFT -= DRIFT[0]


def lattice(drift, *, flaws=0, light=0.0, seed=3):
    """Round holes in rows, of which some are filled, under light that falls off and stands still."""
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]].astype(float)
    rng = np.random.default_rng(seed)
    filled = rng.uniform(20, 125, (flaws, 2))
    filled = PERIOD * np.rint(filled / PERIOD)
    frames = []
    for dy, dx in drift:
        frame = np.cos(2 * np.pi * (y - dy) / PERIOD) + np.cos(2 * np.pi * (x - dx) / PERIOD)
        for row, column in filled:
            distance = ((y - dy - row) ** 2 + (x - dx - column) ** 2) / (2 * 2.2**2)
            frame = frame - 1.7 * np.exp(-distance)
        frames.append(frame * (1 + light * (x / SHAPE[1] - 0.5)))
    return 300 + 60 * np.array(frames)


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_flaws_tell_the_period(xp, seed):
    stack = lattice(DRIFT, flaws=12, light=0.3, seed=seed)
    result = estimate_shifts(xp.asarray((stack + noise(stack, 6)).astype(np.float32)), max_shift=24)
    assert np.abs(result.shifts + DRIFT).max() < 0.05
    assert (result.peak_ratio[1:] < 1.1).all()
    assert result.trusted.all()


@pytest.mark.parametrize("light", [0.0, 0.6])
@pytest.mark.parametrize("deviation", [0.0, 3.0, 60.0])
def test_a_perfect_lattice_stays_ambiguous(light, deviation):
    """Uneven light, which prefers the smaller shift, settles nothing."""
    stack = lattice(DRIFT + np.linspace(0, 7, COUNT)[:, None], light=light)
    result = estimate_shifts((stack + noise(stack, deviation)).astype(np.float32), max_shift=24)
    doubted = [bool({"ambiguous", "uncertain", "inconsistent"} & set(flags)) for flags in result.flags[1:]]
    assert all(doubted)


def test_the_right_period_is_found_from_a_wrong_one():
    stack = lattice(DRIFT, flaws=12).astype(np.float32)
    stack += noise(stack, 6).astype(np.float32)
    window = ShiftWindow.symmetric(24, 24)
    for begin in (-DRIFT, -DRIFT + (PERIOD, 0)):
        found = settled(stack[:1], stack, begin, window, 0.25)
        assert np.abs(found + DRIFT)[1:].max() < 0.1


def test_without_rivals_nothing_is_settled():
    stack = drifting(DRIFT[:3], (90, 95), seed=2).astype(np.float32)
    assert np.isnan(settled(stack[:1], stack, -DRIFT[:3], ShiftWindow.symmetric(20, 20), 0.25)).all()


@pytest.mark.parametrize("seed", [3, 5])
def test_a_lattice_in_which_something_moves_is_not_turned(seed):
    """Turned by 90 degrees a lattice fits itself, at shifts far beyond those that are searched."""
    stack = lattice(DRIFT, flaws=14, seed=seed)
    texture = ndimage.gaussian_filter(np.random.default_rng(seed).normal(size=(200, 200)), 1.5)
    for t, frame in enumerate(stack):
        y, x = 60 + int(3 * np.sin(t)), 60 + t
        frame[80:140, 90:150] = 300 + 40 * texture[y : y + 60, x : x + 60] / texture.std()
    result = estimate_shifts((stack + noise(stack, 5, seed=99)).astype(np.float32), max_shift=24)
    assert np.abs(result.shifts + DRIFT).max() < 1
