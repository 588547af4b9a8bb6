"""What frames are moved by whose shift is not to be trusted."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tests.registration.scenes import drifting
from xcorr_app import estimate_shifts
from xcorr_app.errors import ArgumentError
from xcorr_app.registration.results.doubtful_frames import POLICIES, applied_shifts

MEASURED = np.array(
    [(50, 50), (1, 2), (-70, 9), (np.nan, np.nan), (4, 8), (5, 9), (6, 10), (np.nan, np.nan)], dtype=float
)
TRUSTED = np.array([False, True, False, False, True, True, True, False])


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("interpolate", [(1, 2), (1, 2), (2, 4), (3, 6), (4, 8), (5, 9), (6, 10), (6, 10)]),
        ("apply", [(50, 50), (1, 2), (-70, 9), (-33, 8.5), (4, 8), (5, 9), (6, 10), (6, 10)]),
        ("leave", [(0, 0), (1, 2), (0, 0), (0, 0), (4, 8), (5, 9), (6, 10), (0, 0)]),
        (
            "drop",
            [(np.nan, np.nan), (1, 2), (np.nan, np.nan), (np.nan, np.nan), (4, 8), (5, 9), (6, 10), (np.nan, np.nan)],
        ),
    ],
)
def test_policies(policy, expected):
    before = MEASURED.copy()
    np.testing.assert_allclose(applied_shifts(MEASURED, TRUSTED, policy), expected, rtol=1e-14)
    np.testing.assert_array_equal(MEASURED, before)


@pytest.mark.parametrize("policy", POLICIES)
def test_trusted_shifts_are_kept_to_the_last_bit(rng, policy):
    measured, trusted = rng.normal(size=(50, 2)), rng.random(50) < 0.6
    np.testing.assert_array_equal(applied_shifts(measured, trusted, policy)[trusted], measured[trusted])


def test_a_jump_that_was_not_measured_is_never_applied(rng):
    measured, trusted = np.cumsum(rng.normal(size=(200, 2)), axis=0), rng.random(200) < 0.6
    trusted[[0, -1]] = True
    found = applied_shifts(measured, trusted)
    places = np.flatnonzero(trusted)
    for start, stop in pairwise(places):
        steps = np.diff(found[start : stop + 1], axis=0)
        np.testing.assert_allclose(steps, np.broadcast_to(steps[0], steps.shape), atol=1e-12)


def test_where_nothing_is_trusted_nothing_moves():
    none = np.zeros(8, dtype=bool)
    for policy in ("interpolate", "leave"):
        assert not applied_shifts(MEASURED, none, policy).any()
    np.testing.assert_array_equal(applied_shifts(MEASURED, none, "apply")[:3], MEASURED[:3])
    for policy in ("interpolate", "apply", "leave"):
        assert not applied_shifts(np.full((3, 2), np.nan), none[:3], policy).any()
    assert np.isnan(applied_shifts(MEASURED, none, "drop")).all()


def test_few_trusted_frames_are_no_line_to_follow():
    few = TRUSTED & (np.arange(8) < 5)
    assert not applied_shifts(MEASURED, few).any()
    np.testing.assert_array_equal(applied_shifts(MEASURED, few, "leave")[[1, 4]], MEASURED[[1, 4]])
    np.testing.assert_array_equal(applied_shifts(MEASURED, few, "apply"), applied_shifts(MEASURED, TRUSTED, "apply"))


def test_other_policies_are_refused():
    with pytest.raises(ArgumentError, match="interpolate, apply, leave, drop"):
        applied_shifts(MEASURED, TRUSTED, "guess")


def test_a_result_says_what_is_trusted_and_what_to_apply(xp):
    places = np.array([(0, 0), (1, 1), (9, 0), (3, 3)], dtype=float)
    stack = drifting(places, width=0.02)
    stack = np.concatenate([stack, np.zeros_like(stack[:1])])
    result = estimate_shifts(xp.asarray(stack), "first", 5)
    np.testing.assert_array_equal(result.trusted, [True, True, False, True, False])
    np.testing.assert_allclose(result.applied(), [(0, 0), (-1, -1), (-2, -2), (-3, -3), (-3, -3)], atol=0.1)
    np.testing.assert_array_equal(result.applied("apply")[:4], result.shifts[:4])
    np.testing.assert_array_equal(result.applied("leave")[[2, 4]], 0)
    with pytest.raises(ArgumentError, match="guess"):
        result.applied("guess")


def test_a_low_score_is_a_remark(rng):
    # Frames that change by a tenth of a scene of their own: they resemble each other little, and lie where they lie.
    common = drifting([(0, 0), (2, -1), (4, 1)], shape=(128, 128), width=0.1)
    own = np.concatenate([drifting([(0, 0)], shape=(128, 128), width=0.1, seed=s) for s in (5, 6, 7)])
    result = estimate_shifts(common + 1.5 * own, "first", 8)
    assert ["low-score" in flags for flags in result.flags] == [False, True, True]
    assert result.trusted.all()
    np.testing.assert_array_equal(result.applied(), result.shifts)


def test_dark_frames_between_sure_ones_are_no_doubt():
    shifts = np.stack([np.arange(12.0), -2 * np.arange(12.0)], axis=1)
    sure = np.arange(12) % 3 == 0
    dark = np.where(sure[:, None], shifts, np.nan)
    np.testing.assert_allclose(applied_shifts(dark, sure)[:10], shifts[:10], atol=1e-12)
