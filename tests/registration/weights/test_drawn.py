"""What is drawn into frames is found by its values, and left out of the measurement."""

import numpy as np
import pytest
from scipy import ndimage

from tests.registration.scenes import drifting, noise, walk
from xcorr_app import estimate_shifts
from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import ArrayFrames
from xcorr_app.registration.weights.weighing import weighted

DRIFT = walk(5, 14, 1.2)
SHAPE = (151, 162)
BORDERS = np.random.default_rng(3).integers(-12, 13, (14, 2))


def left_out(stack):
    """What is filled, in words."""
    return weighted(ArrayFrames(stack), "first", Settings()).notes


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


def with_time(stack):
    """A black box, two rows larger than its digits, of which the last three change."""
    glyphs = np.random.default_rng(9).random((10, 12, 8)) < 0.5
    for t, frame in enumerate(stack):
        frame[4:20, 4:100] = 0
        for place, digit in enumerate(f"{t * 37:08d}"):
            frame[6:18, 8 + 10 * place : 16 + 10 * place] = 255 * glyphs[int(digit)]
    return stack


@pytest.mark.share(3)
@pytest.mark.parametrize("draw", [with_caption, with_clock, with_time])
def test_what_is_drawn_does_not_pin_the_shifts(xp, draw):
    result = estimate_shifts(xp.asarray(draw(recorded())), "first", 20)
    np.testing.assert_allclose(result.shifts, -DRIFT, atol=0.12)
    assert result.trusted.all()
    assert any("drawn into every frame" in note for note in result.notes)


def test_a_sector_is_left_out(xp):
    stack = recorded()
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    stack[:, outside := abs(x - 80) > 0.55 * (y + 20)] = 0
    filled = weighted(ArrayFrames(xp.asarray(stack)), "first", Settings()).frames.read(0, len(stack)).frames
    hidden = (to_host(filled) != stack).any(axis=0)
    assert hidden[~outside].mean() < 0.06 < 0.98 < hidden[outside].mean()
    np.testing.assert_allclose(estimate_shifts(xp.asarray(stack), "first", 20).shifts, -DRIFT, atol=0.12)


def with_borders(stack, widths):
    for frame, (top, left) in zip(stack, widths, strict=True):
        frame[: max(top, 0)] = 0
        frame[SHAPE[0] + min(top, 0) :] = 0
        frame[:, : max(left, 0)] = 0
        frame[:, SHAPE[1] + min(left, 0) :] = 0
    return stack


def test_borders_of_frames_that_were_moved_before_are_left_out(xp):
    result = estimate_shifts(xp.asarray(with_borders(recorded(), BORDERS)), "first", 20)
    np.testing.assert_allclose(result.shifts, -DRIFT, atol=0.12)
    assert any("borders of a single value" in note for note in result.notes)


def test_parts_of_a_scene_that_are_empty_or_saturated_are_not_drawn():
    stack = recorded().astype(int)
    assert left_out(stack) == ()
    assert left_out(np.clip(stack, 0, 110)) == ()
    assert left_out(np.clip(stack - 110, 0, None)) == ()
    still = np.repeat(recorded(0.0)[:1], 14, axis=0)
    assert left_out(still) == ()


def shaken(scene, step, count=16, seed=2):
    path = np.random.default_rng(seed).normal(0, step, (count, 2))
    path -= path[0]
    return np.stack([ndimage.shift(scene, each, order=3, mode="grid-wrap") for each in path]), path


@pytest.mark.parametrize("saturated", [False, True])
def test_a_scene_that_ends_in_slopes_is_not_drawn(xp, saturated):
    """Segmented cells on zero, or blobs beyond the range, that hardly move."""
    rng = np.random.default_rng(4)
    cells = ndimage.gaussian_filter(rng.normal(size=SHAPE), 8, mode="wrap") > 0.015
    clean, path = shaken(ndimage.gaussian_filter(100.0 * cells, 0.8, mode="wrap"), 0.05)
    if saturated:
        stack = np.clip(20 + 6 * clean + rng.normal(0, 5, clean.shape), 0, 255).round().astype(np.uint8)
    else:
        stack = np.where(clean > 2, rng.poisson(clean.clip(0)), 0).astype(np.uint16)
    assert left_out(xp.asarray(stack)) == ()
    np.testing.assert_allclose(estimate_shifts(xp.asarray(stack), "first", 20).shifts, -path, atol=0.06)
