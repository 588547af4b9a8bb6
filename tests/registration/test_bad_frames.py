"""Frames that cannot be measured, or only in part: counted, named, and harmless to the others."""

import numpy as np
import pytest

from tests.registration.scenes import EVERY_REFERENCE, UnreliableFrames, drifting, noise, walk
from xcorr_app import estimate_shifts
from xcorr_app.errors import ArgumentError
from xcorr_app.registration.estimate import estimate_from
from xcorr_app.registration.settings import Settings

DRIFT = np.array([(0, 0), (1, -2), (3, 1), (5, 4), (2, 6), (-3, 2)], dtype=float)


def measure(frames, reference, **options):
    return estimate_from(frames, reference, Settings(max_shift=12), xp=np, **options)


def test_non_finite_pixels_are_replaced_counted_and_flagged(xp):
    stack = drifting(DRIFT, offset=50).astype(np.float32)
    stack[1, 5, 5] = np.nan
    stack[2, 10:13, 7] = np.inf
    stack[4, 40, 30:35] = -np.inf
    result = estimate_shifts(xp.asarray(stack), "first", 12)
    np.testing.assert_array_equal(result.non_finite, [0, 1, 3, 0, 5, 0])
    assert [("non-finite" in flags) for flags in result.flags] == [False, True, True, False, True, False]
    np.testing.assert_allclose(result.shifts, -DRIFT, atol=0.05)


def test_a_pixel_that_is_no_number_throughout_is_no_dead_pixel(xp):
    stack = 1000 + 10 * np.random.default_rng(4).normal(size=(6, 64, 64)).astype(np.float32)
    stack[:, 50, 50] = np.nan
    result = estimate_shifts(xp.asarray(stack), max_shift=4)
    assert (result.non_finite == 1).all()
    assert all("non-finite" in flags for flags in result.flags)
    assert not any("dead" in note for note in result.notes)


def test_what_is_no_number_in_any_frame_is_masked_and_told_once():
    stack = drifting(DRIFT, offset=50).astype(np.float32)
    stack[:, 20:24], stack[:, :, 31] = np.nan, np.inf
    result = estimate_shifts(stack, "first", 12)
    np.testing.assert_allclose(result.shifts, -DRIFT, atol=0.05)
    assert (result.non_finite > 0).all()
    assert result.flags == ((),) * len(DRIFT)
    assert any("mask: finite" in note for note in result.notes)


def test_non_finite_pixels_of_the_reference_do_not_spread(xp):
    stack = drifting(DRIFT, offset=50)
    stack[0, 3, 4] = np.nan
    for reference in EVERY_REFERENCE:
        result = estimate_shifts(xp.asarray(stack), reference, 12)
        assert np.isfinite(result.shifts).all(), reference
        assert "non-finite" in result.flags[0]


@pytest.mark.share(4)
@pytest.mark.parametrize("reference", EVERY_REFERENCE)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_frame_of_nothing_else_is_unreadable_and_not_a_shift_of_zero(xp, reference, value):
    stack = drifting(DRIFT)
    stack[3] = value
    result = estimate_shifts(xp.asarray(stack), reference, 12)
    assert np.isnan(result.shifts[3]).all()
    assert np.isnan(result.score[3])
    assert "unreadable" in result.flags[3]
    assert result.non_finite[3] == stack[0].size
    others = np.arange(len(DRIFT)) != 3
    assert np.isfinite(result.shifts[others]).all()
    if reference in ("first", "previous"):
        np.testing.assert_allclose(result.shifts[others], -DRIFT[others], atol=0.05)


@pytest.mark.share(3)
@pytest.mark.parametrize("reference", EVERY_REFERENCE)
@pytest.mark.parametrize("bad", [0, 2, 5])
def test_a_constant_frame_is_flat_and_changes_no_other(xp, reference, bad):
    stack = drifting(DRIFT, offset=100, contrast=10).astype(np.float32)
    stack[bad] = 7
    result = estimate_shifts(xp.asarray(stack), reference, 12)
    assert "flat" in result.flags[bad]
    assert np.isnan(result.shifts[bad]).all()
    others = np.flatnonzero(np.arange(len(DRIFT)) != bad)
    without = estimate_shifts(xp.asarray(np.delete(stack, bad, axis=0)), reference, 12)
    np.testing.assert_allclose(result.shifts[others], without.shifts, atol=1e-4)


@pytest.mark.parametrize("reference", EVERY_REFERENCE)
def test_a_stack_of_flat_frames_has_no_shift_and_says_why(xp, reference):
    stack = np.zeros((4, 16, 16), dtype=np.uint16) + np.arange(4, dtype=np.uint16)[:, None, None]
    result = estimate_shifts(xp.asarray(stack), reference, verify="all")
    assert np.isnan(result.shifts).all()
    assert result.flags == (("flat",),) * 4
    assert result.reference == "none"
    assert "No frame can serve as a reference" in result.notes[0]


@pytest.mark.parametrize("reference", EVERY_REFERENCE)
def test_a_stack_of_one_frame_lies_on_itself(xp, reference):
    result = estimate_shifts(xp.asarray(drifting([(0, 0)])), reference, verify="all")
    np.testing.assert_allclose(result.shifts, [(0, 0)], atol=1e-5)
    assert result.flags == ((),)
    if reference in ("mean", "template"):
        assert "no other usable frame" in " ".join(result.notes)


@pytest.mark.parametrize("axis", [0, 1])
def test_images_of_one_line_move_along_it_and_not_across(xp, axis):
    places = np.array([0.0, 2.0, -3.3, 5.6])
    lines = drifting(np.stack([np.zeros(4), places], axis=1), shape=(1, 120), width=0.06)
    result = estimate_shifts(xp.asarray(lines if axis == 0 else lines.transpose(0, 2, 1)), "first", 12)
    across, along = (0, 1) if axis == 0 else (1, 0)
    np.testing.assert_array_equal(result.shifts[:, across], 0)
    np.testing.assert_allclose(result.shifts[:, along], -places, atol=0.1)


@pytest.mark.share(4)
@pytest.mark.parametrize("shape", [(1, 2), (2, 1), (2, 2), (3, 3), (1, 7), (5, 2)])
@pytest.mark.parametrize("reference", EVERY_REFERENCE)
def test_tiny_images_do_not_fail(xp, rng, shape, reference):
    stack = rng.normal(size=(4, *shape))
    result = estimate_shifts(xp.asarray(stack), reference, verify="all")
    assert result.shifts.shape == (4, 2)
    for t, flags in enumerate(result.flags):
        assert np.isnan(result.shifts[t]).any() == ("flat" in flags)


BROKEN = {2: "decoding failed"}


def test_an_unreadable_frame_has_its_reason_and_no_shift():
    result = measure(UnreliableFrames(drifting(DRIFT), BROKEN), "first", verify="all")
    assert result.unreadable == BROKEN
    assert result.flags[2] == ("unreadable",)
    assert np.isnan(result.shifts[2]).all()
    assert np.isnan(result.fft_shifts[2]).all()
    others = np.array([0, 1, 3, 4, 5])
    np.testing.assert_allclose(result.shifts[others], -DRIFT[others], atol=0.05)


@pytest.mark.share(4)
@pytest.mark.parametrize("reference", EVERY_REFERENCE)
def test_unreadable_frames_take_no_part_in_any_reference(reference):
    stack = drifting(DRIFT, offset=30)
    broken = {0: "truncated", 3: "truncated"}
    result = measure(UnreliableFrames(stack, broken), reference)
    kept = np.array([1, 2, 4, 5])
    np.testing.assert_allclose(
        result.shifts[kept], measure(UnreliableFrames(stack[kept], {}), reference).shifts, atol=1e-4
    )


@pytest.mark.parametrize(("reference", "broken", "taken"), [("first", 0, 1), ("last", 5, 4)])
def test_the_next_frame_serves_when_the_first_cannot(reference, broken, taken):
    result = measure(UnreliableFrames(drifting(DRIFT), {broken: "truncated"}), reference)
    assert f"({taken})" in result.reference
    assert f"Frame {broken} cannot be a reference" in result.notes[0]
    expected = np.where(np.arange(6)[:, None] == broken, np.nan, DRIFT[taken] - DRIFT)
    np.testing.assert_allclose(result.shifts, expected, atol=0.05)


def test_a_stack_of_unreadable_frames_has_no_shift():
    broken = dict.fromkeys(range(6), "gone")
    for reference in EVERY_REFERENCE:
        result = measure(UnreliableFrames(drifting(DRIFT), broken), reference, verify="all")
        assert np.isnan(result.shifts).all()
        assert result.flags == (("unreadable",),) * 6
        assert result.unreadable == broken


def test_a_bad_frame_asked_for_as_the_reference_is_an_error():
    with pytest.raises(ArgumentError, match="frame 2 cannot be the reference"):
        measure(UnreliableFrames(drifting(DRIFT), BROKEN), 2)


def test_a_doubtful_step_makes_all_later_sums_doubtful():
    stack = drifting(np.array([(0, 0), (2, 1), (14, 1), (15, 2)]))
    result = estimate_shifts(stack, "previous", 6)
    assert result.flags[:2] == ((), ())
    assert "edge" in result.flags[2]
    assert "inherited" in result.flags[3]


@pytest.mark.parametrize("reference", ["first", "template"])
def test_torn_frames_are_inconsistent(reference):
    """From a row on they show what the frame before did."""
    drift = walk(3, 22, 1.8)
    stack = drifting(drift, (151, 162), width=0.06, noisy=0.2)
    for torn, row in ((6, 60), (15, 75)):
        stack[torn, row:] = stack[torn - 1, row:]
    result = estimate_shifts(stack, reference, 30)
    assert [t for t in range(22) if "inconsistent" in result.flags[t]] == [6, 15]
    assert not any("turn" in note for note in result.notes)


def test_what_may_have_become_of_frames_without_a_sure_peak_is_named():
    stack = drifting(np.linspace(0, 6, 14)[:, None] * np.array([1, -1]), (151, 162), width=0.06, noisy=0.3)
    assert estimate_shifts(stack, "first", 20).notes == ()
    stack[8:] = noise(stack[8:], 1, 9)
    result = estimate_shifts(stack, "first", 20)
    lost = sum("uncertain" in flags and "ambiguous" not in flags for flags in result.flags)
    assert lost > 0
    assert any(note.startswith(f"In {lost} of 14 frames no peak is sure within 20 rows") for note in result.notes)


@pytest.mark.parametrize("reference", ["first", "last"])
@pytest.mark.parametrize("closed", [1, 3])
def test_frames_of_a_closed_shutter_are_no_reference(xp, reference, closed):
    """They show noise; all others would be lost against them."""
    path = np.cumsum(np.random.default_rng(2).normal(size=(16, 2)), axis=0)
    stack = drifting(path, (90, 98), contrast=20, offset=200)
    stack[:closed] = 100
    stack = (stack + noise(stack, 2.0)).astype(np.float32)
    if reference == "last":
        stack, path = stack[::-1], path[::-1]
    result = estimate_shifts(xp.asarray(stack.copy()), reference, 20)
    sound = np.arange(16) >= closed if reference == "first" else np.arange(16) < 16 - closed
    np.testing.assert_array_equal(result.trusted, sound)
    number = closed if reference == "first" else 15 - closed
    np.testing.assert_allclose(result.shifts[sound], (path[number] - path)[sound], atol=0.05)
    assert any(f"The {reference} frame shows nothing" in note and f"frame {number}" in note for note in result.notes)


def test_where_no_frame_finds_another_the_first_stays_the_reference():
    stack = np.random.default_rng(5).poisson(20, (12, 90, 98))
    result = estimate_shifts(stack, "first", 20)
    assert result.reference == "first frame (0)"
    assert not result.trusted[1:].any()
