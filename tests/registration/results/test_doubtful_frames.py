"""What frames are moved by whose shift is not to be trusted."""

import numpy as np
import pytest

from tests.registration.scenes import drifting, rms
from xcorr_app import estimate_shifts
from xcorr_app.registration.results.doubtful_frames import POLICIES, applied_shifts
from xcorr_app.registration.settings import Settings

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


def test_a_result_says_what_is_trusted_and_what_to_apply(xp):
    places = np.array([(0, 0), (1, 1), (9, 0), (3, 3)], dtype=float)
    stack = drifting(places, width=0.02)
    stack = np.concatenate([stack, np.zeros_like(stack[:1])])
    result = estimate_shifts(xp.asarray(stack), "first", 5)
    np.testing.assert_array_equal(result.trusted, [True, True, False, True, False])
    np.testing.assert_allclose(result.applied(), [(0, 0), (-1, -1), (-2, -2), (-3, -3), (-3, -3)], atol=0.1)
    np.testing.assert_array_equal(result.applied("apply")[:4], result.shifts[:4])
    np.testing.assert_array_equal(result.applied("leave")[[2, 4]], 0)


def test_a_low_score_is_a_remark(rng):
    # Frames that change by a tenth of a scene of their own: they resemble each other little, and lie where they lie.
    common = drifting([(0, 0), (2, -1), (4, 1)], shape=(128, 128), width=0.1)
    own = np.concatenate([drifting([(0, 0)], shape=(128, 128), width=0.1, seed=s) for s in (5, 6, 7)])
    result = estimate_shifts(common + 1.5 * own, "first", 8)
    assert ["low-score" in flags for flags in result.flags] == [False, True, True]
    assert result.trusted.all()
    np.testing.assert_array_equal(result.applied(), result.shifts)


WINDOW = (129, 129)


def only_the_reference(count):
    return np.arange(count) == 0


def errors_of(truth, sigma, wrong, trusted, seed=0):
    """Errors of what is applied and of what was measured, with noise of such standard errors."""
    measured = truth + np.random.default_rng(seed).normal(size=truth.shape) * sigma
    measured[0] = 0
    applied = applied_shifts(measured, trusted, "interpolate", sigma, wrong, WINDOW)
    return rms(applied - truth), rms(measured - truth)


def jumping(seed):
    """A drift of small steps, and a stage that jumps twice."""
    truth = np.cumsum(np.random.default_rng(seed).normal(0, 0.5, (24, 2)), axis=0)
    return truth - truth[0] + np.repeat([(0, 0), (14, -6), (9, 14)], 8, axis=0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("truth", "sigma", "wrong", "trusted"),
    [
        # A pair; sections that drift by sixty pixels; a short series that jumps; all but a few are flagged.
        (lambda _: np.linspace(0, 1, 12)[:, None] * np.array([60.0, 25.0]), 0.7, 0.0, only_the_reference(12)),
        (lambda _: np.array([(0, 0), (9, -4), (2, 8), (-7, -6), (5, 3.0)]), 0.33, 0.02, np.arange(5) % 3 == 0),
        (lambda _: np.array([(0, 0), (25.0, -22)]), 0.03, 0.3, only_the_reference(2)),
        (jumping, 0.2, 0.3, only_the_reference(24)),
        # One doubted section among others that lie anywhere.
        (lambda s: np.random.default_rng(s).uniform(-60, 60, (12, 2)) * (np.arange(12) > 0)[:, None], 0.5, 0.35,
         np.arange(12) != 5),
    ],
)  # fmt: skip
def test_what_is_applied_is_as_good_as_what_was_measured(truth, sigma, wrong, trusted, seed):
    truth = truth(seed)
    chance = np.where(trusted, 1e-3 * wrong, wrong)
    applied, measured = errors_of(truth, np.full(truth.shape, sigma), chance, trusted, seed)
    assert applied <= 1.05 * measured


@pytest.mark.parametrize("seed", range(5))
def test_a_smooth_drift_says_more_than_a_shift_that_is_hardly_known(seed):
    truth = np.arange(40)[:, None] * np.array([0.05, -0.03])
    sigma, trusted = np.where(np.arange(40) % 4 == 3, 1.5, 0.02)[:, None] * np.ones(2), np.arange(40) % 4 != 3
    applied, measured = errors_of(truth, sigma, np.zeros(40), trusted, seed)
    assert applied < 0.1 * measured


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("sure", "trusted", "doubt"),
    [
        (np.arange(30) % 15 == 0, np.arange(30) % 15 == 0, 0.5),
        (np.arange(30) % 15 == 0, only_the_reference(30), 0.5),
        (only_the_reference(30), only_the_reference(30), 0.45),
    ],
)
def test_shifts_that_follow_a_path_are_right_and_others_are_not(sure, trusted, doubt, seed):
    """Of a blinking scene nearly all frames are flagged, and a third of the peaks are others."""
    rng = np.random.default_rng(seed)
    truth = np.cumsum(rng.normal(0, 0.7, (30, 2)), axis=0)
    truth -= truth[0]
    other = (rng.random(30) < 0.33) & ~sure
    measured = np.where(other[:, None], rng.uniform(-64, 64, (30, 2)), truth + rng.normal(0, 0.1, (30, 2)))
    measured[0] = 0
    wrong = np.where(sure, 0, doubt)
    applied = applied_shifts(measured, trusted, "interpolate", np.full((30, 2), 0.2), wrong, WINDOW)
    assert rms((applied - truth)[~other]) < 0.3
    assert rms(applied - truth) < 2


@pytest.mark.parametrize("seed", range(5))
def test_where_all_is_chance_no_frame_is_moved(seed):
    rng = np.random.default_rng(seed)
    measured, trusted = rng.uniform(-64, 64, (20, 2)), only_the_reference(20)
    measured[0] = 0
    lucky = trusted | (np.arange(20) == 11)  # one peak in twenty is as high as noise reaches in a hundred
    for sure, luck in ((trusted, 0.23), (lucky, 0.23), (trusted, 0.004)):
        wrong = np.where(trusted, 0, np.where(lucky, luck, 0.9))
        found = applied_shifts(measured, sure, "interpolate", np.full((20, 2), 0.6), wrong, WINDOW)
        # A peak that lies within a pixel of the reference, as one of these does, is more probably right than chance.
        assert not found.any() or (seed == 4 and abs(found).max() < 1)


@pytest.mark.parametrize(("wrong", "moved"), [(0.55, False), (0.1, True)])
@pytest.mark.parametrize("trusted", [np.zeros(12, dtype=bool), only_the_reference(12)])
def test_frames_that_agree_with_each_other_but_with_no_sure_one_move_only_if_most_are_right(wrong, moved, trusted):
    measured = np.array([20, -15]) + np.cumsum(np.random.default_rng(0).integers(-1, 2, (12, 2)), axis=0)
    # Against another scene, a few of them seem likely.
    chance = np.where(trusted, 0, wrong + np.linspace(-0.1, 0.1, 12))
    applied = applied_shifts(measured.astype(float), trusted, "interpolate", np.full((12, 2), 0.8), chance, WINDOW)
    assert applied.any(axis=1).all() == applied.any() == moved


@pytest.mark.parametrize("sure", [(24, 25), (11, 12, 13, 14), (0, 50)])
def test_where_fewer_than_half_are_expected_right_frames_lie_between_sure_ones(sure):
    """A cell divides on a still stage: what resembles the reference is sure, others are like each other, or dark."""
    measured, trusted = np.cumsum(np.random.default_rng(1).normal(0, 1, (51, 2)), axis=0), np.isin(np.arange(51), sure)
    wrong = np.where(trusted, 0, np.where(np.arange(51) % 3 == 0, 1.0, 0.51))
    doubted = applied_shifts(measured, trusted, "interpolate", np.full((51, 2), 0.3), wrong, WINDOW)
    lines = np.stack([np.interp(np.arange(51), sure, measured[list(sure), axis]) for axis in range(2)], axis=1)
    dark = np.where(trusted[:, None], measured, np.nan)
    np.testing.assert_allclose([doubted, applied_shifts(dark, trusted)], [lines, lines], atol=1e-12)


def test_what_is_flagged_by_its_error_alone_is_weighed_but_what_is_trusted_stands():
    measured = np.array([(0, 0), (1, 1), (30, 2), (3, 3), (4, 4)], dtype=float)
    trusted = np.array([True, True, False, True, True])
    sigma = np.full((5, 2), 0.05)
    found = applied_shifts(measured, trusted, "interpolate", sigma, np.array([0, 0, 0.9, 0, 0]), WINDOW)
    np.testing.assert_array_equal(found, [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)])


def test_the_limit_of_the_flag_follows_the_motion():
    assert Settings().sigma_limit(np.zeros((3, 2))) == 0.5
    assert Settings().sigma_limit(np.array([(0, 0), (60.0, 5.0)])) == pytest.approx(1.2)
    assert Settings(max_sigma=0.3).sigma_limit(np.array([(0, 0), (60.0, 5.0)])) == 0.3
