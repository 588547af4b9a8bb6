"""What is drawn into frames is found by its values, and left out of the measurement."""

from __future__ import annotations

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts
from xcorr_app.registration.drawn_in import FilledFrames, without_drawn
from xcorr_app.registration.frames import ArrayFrames

DRIFT = np.cumsum(np.random.default_rng(5).normal(0, 1.2, (14, 2)), axis=0)
DRIFT -= DRIFT[0]
SHAPE = (151, 162)


def recorded(deviation=0.3, seed=7):
    clean = drifting(DRIFT, SHAPE, width=0.06, seed=seed)
    return np.clip(np.rint(110 + 20 * (clean + noise(clean, deviation))), 0, 255).astype(np.uint8)


def with_caption(stack):
    """A black bar with white letters below, and a white line around the picture."""
    letters = np.random.default_rng(1).random((9, 60)) > 0.5
    stack[:, 126:] = 0
    stack[:, 134:143, 20:140] = np.where(letters.repeat(2, axis=1), 255, 0)
    stack[:, :2] = stack[:, :, :2] = stack[:, :, -2:] = 255
    return stack


def with_clock(stack):
    """Digits that change lie beside letters that do not."""
    rng = np.random.default_rng(2)
    for t, frame in enumerate(stack):
        letters = np.random.default_rng(0 if t < 0 else 3).random((7, 20)) > 0.4
        letters[:, 12:] = rng.random((7, 8)) > 0.4
        part = frame[6:20, 8:48]
        part[letters.repeat(2, axis=0).repeat(2, axis=1)] = 255
    return stack


@pytest.mark.parametrize("draw", [with_caption, with_clock])
def test_what_is_drawn_does_not_pin_the_shifts(xp, draw):
    result = estimate_shifts(xp.asarray(draw(recorded())), "first", 20)
    np.testing.assert_allclose(result.shifts, -DRIFT, atol=0.12)
    assert result.trusted.all()
    assert any("drawn into every frame" in note for note in result.notes)


def test_a_sector_is_left_out(xp):
    stack = recorded()
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    outside = abs(x - 80) > 0.55 * (y + 20)
    stack[:, outside] = 0
    found = without_drawn(ArrayFrames(xp.asarray(stack)))
    assert (found.part[outside]).mean() > 0.98
    assert (found.part[~outside]).mean() < 0.06
    np.testing.assert_allclose(estimate_shifts(xp.asarray(stack), "first", 20).shifts, -DRIFT, atol=0.12)


def with_borders(stack, widths):
    for frame, (top, left) in zip(stack, widths, strict=True):
        frame[: max(top, 0)] = 0
        frame[SHAPE[0] + min(top, 0) :] = 0
        frame[:, : max(left, 0)] = 0
        frame[:, SHAPE[1] + min(left, 0) :] = 0
    return stack


def test_borders_of_frames_that_were_moved_before_are_left_out(xp):
    widths = np.random.default_rng(3).integers(-12, 13, (14, 2))
    result = estimate_shifts(xp.asarray(with_borders(recorded(), widths)), "first", 20)
    np.testing.assert_allclose(result.shifts, -DRIFT, atol=0.12)
    assert any("borders of a single value" in note for note in result.notes)


def test_borders_where_the_reference_shows_nothing_do_no_harm():
    """Frames that were moved once: what was filled lies beyond the overlap."""
    stack = with_borders(recorded(), np.floor(DRIFT).astype(int))
    assert without_drawn(ArrayFrames(stack)).borders
    np.testing.assert_allclose(estimate_shifts(stack, "first", 20).shifts, -DRIFT, atol=0.12)


def test_parts_of_a_scene_that_are_empty_or_saturated_are_not_drawn():
    stack = recorded().astype(int)
    assert not isinstance(without_drawn(ArrayFrames(stack)), FilledFrames)
    assert not isinstance(without_drawn(ArrayFrames(np.clip(stack, 0, 110))), FilledFrames)
    assert not isinstance(without_drawn(ArrayFrames(np.clip(stack - 110, 0, None))), FilledFrames)
    still = np.repeat(recorded(0.0)[:1], 14, axis=0)
    assert not isinstance(without_drawn(ArrayFrames(still)), FilledFrames)


def test_stuck_columns_are_not_drawn():
    stack = recorded()
    stack[:, :, 60:62] = 255
    assert not isinstance(without_drawn(ArrayFrames(stack)), FilledFrames)
