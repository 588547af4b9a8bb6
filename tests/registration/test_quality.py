"""Words about a frame's shift, and the noise estimate behind one of them."""

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise
from xcorr_app import ShiftWindow, estimate_shifts
from xcorr_app.registration.quality import doubtful_below, is_trusted, score_by_chance, signal_fraction


@pytest.mark.parametrize("snr", [5.0, 2.0, 1.0, 0.5, 0.2])
def test_signal_fraction_of_a_smooth_scene_in_white_noise(xp, snr):
    clean = drifting([(0, 0)] * 3, shape=(128, 128), width=0.03)
    noisy = clean + noise(clean, 1 / snr)
    noisy -= noisy.mean(axis=(1, 2), keepdims=True)
    share = clean.var() / (clean.var() + 1 / snr**2)
    np.testing.assert_allclose(signal_fraction(xp.asarray(noisy)), share, atol=0.08)


def test_signal_fraction_of_integers_is_that_of_floats(xp, rng):
    stack = rng.integers(40_000, 40_300, (3, 40, 50))
    floats = signal_fraction(xp.asarray(stack - stack.mean(axis=(1, 2), keepdims=True)))
    np.testing.assert_allclose(signal_fraction(xp.asarray(stack.astype(np.uint16))), floats, atol=1e-3)
    stored = signal_fraction(xp.asarray(stack.astype(np.float32)), stack.var(axis=(1, 2)))
    np.testing.assert_allclose(stored, floats, atol=0.05)
    large = (stack.astype(np.int64) - 40_150) * 50_000_000_000_000_000
    np.testing.assert_allclose(signal_fraction(xp.asarray(large)), floats, atol=1e-3)
    assert (signal_fraction(xp.asarray(np.full((2, 9, 9), 7, np.uint8))) == 1).all()


def test_least_score_follows_what_noise_allows_but_not_below_chance():
    one, window = np.ones(1), ShiftWindow.symmetric(8, 8)
    assert doubtful_below(0.85, one, one, score_by_chance(1e6 * one, window))[0] == pytest.approx(0.85)
    assert doubtful_below(0.85, one, 0.25 * one, score_by_chance(1e6 * one, window))[0] == pytest.approx(0.85 * 0.5)
    chance = doubtful_below(0.85, 0 * one, one, score_by_chance(64 * 64 * one, window))[0]
    assert 5 / 64 < chance < 8 / 64
    assert doubtful_below(0.85, 0 * one, one, score_by_chance(16 * 16 * one, window))[0] == pytest.approx(4 * chance)


def test_scores_are_in_range_for_scenes_of_any_kind(rng):
    stack = rng.integers(0, 2, (6, 20, 20)).astype(float)
    stack[3] = 1 - stack[0]  # the negative of the first
    for subpixel in ("gaussian", "dft", "quadratic", "parabolic", "none"):
        result = estimate_shifts(stack, "first", 4, subpixel=subpixel)
        assert (np.abs(result.score) <= 1).all()
        assert (result.peak_ratio >= 1 - 1e-12).all()
    assert "low-score" in result.flags[3]


@pytest.mark.parametrize("normalization", ["zncc", "phase", "none"])
def test_shifts_of_too_small_an_overlap_are_not_considered(rng, normalization):
    stack = rng.normal(size=(30, 24, 24))
    result = estimate_shifts(stack, "first", 1000, normalization=normalization, min_overlap=0.5)
    left = np.prod(24 - np.abs(np.rint(result.shifts)), axis=1) / 24**2
    assert (left >= 0.5 - 1e-9).all()
    assert np.isfinite(result.score).all()
    assert not any("flat" in flags for flags in result.flags)


@pytest.mark.parametrize("max_shift", [None, 8, 1000])
@pytest.mark.parametrize("size", [32, 64])
def test_unrelated_noise_is_never_trusted(rng, max_shift, size):
    stack = rng.normal(size=(60, size, size))
    result = estimate_shifts(stack, "first", max_shift)
    assert [t for t, flags in enumerate(result.flags) if is_trusted(flags)] == [0]


@pytest.mark.parametrize("reference", ["first", "last"])
@pytest.mark.parametrize(("displacement", "flagged"), [(4, False), (6, True), (10, True)])
def test_a_peak_beside_shifts_with_too_little_overlap_is_on_an_edge(xp, reference, displacement, flagged):
    stack = xp.asarray(drifting([(0, 0), (-displacement, 0)], shape=(50, 50), width=0.01))
    # Nine tenths of 50 rows overlap up to a shift of 5 rows.
    result = estimate_shifts(stack, reference, max_shift=(20, 0), min_overlap=0.9)
    assert abs(result.shifts).max() == pytest.approx(min(displacement, 5), abs=0.1)
    moved = 1 if reference == "first" else 0
    assert ("edge" in result.flags[moved]) == flagged
    # The frame that is the reference itself has neighbours, and columns are an axis of one shift.
    assert "edge" not in result.flags[1 - moved]
