"""Pixels that are hot or dead, and what is drawn into every frame, do not pin the shifts."""

import cv2
import numpy as np
import pytest
from scipy import ndimage

from tests.registration.scenes import drifting, noise, walk
from xcorr_app import estimate_shifts
from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import ArrayFrames
from xcorr_app.registration.weights.weighing import weighted

DRIFT = np.array([(0, 0), (2.5, -1), (4, 3), (-5, 6), (1, 1)])


def camera():
    clean = 200 + 40 * drifting(DRIFT, shape=(96, 104))
    return np.clip(np.rint(clean + noise(clean, 8)), 0, None).astype(np.uint16)


@pytest.mark.parametrize("value", [65535, 2000])
def test_hot_and_dead_pixels_do_not_pin_the_shifts(xp, value):
    stack = camera()
    stack[:, 30, 41], stack[:, 70, 12] = value, 0
    before = stack.copy()
    given = xp.asarray(stack)
    result = estimate_shifts(given, "first", 10)
    np.testing.assert_allclose(result.shifts, -DRIFT, atol=0.1)
    assert any(note.startswith("2 hot or dead pixels") and "(30, 41), (70, 12)" in note for note in result.notes)
    np.testing.assert_array_equal(to_host(given), before)


def test_frames_of_a_sound_camera_are_measured_as_they_are():
    frames = ArrayFrames(camera())
    found = weighted(frames, "first", Settings())
    assert found.frames is frames
    assert found.notes == ()


@pytest.mark.parametrize("count", [4, 7, 11, 16, 30])
def test_pixels_that_flicker_do_not_pin_the_shifts(xp, count):
    rng = np.random.default_rng(count)
    drift = np.stack([6 * np.sin(0.3 * np.arange(count)), 0.4 * np.arange(count)], axis=1)
    clean = 200 + 40 * drifting(drift, shape=(96, 104))
    stack = np.clip(np.rint(clean + noise(clean, 8)), 0, None).astype(np.uint16)
    places = rng.integers(2, 94, (6, 2))
    for frame in stack:
        frame[tuple(places[rng.random(6) < 0.5].T)] = rng.integers(20_000, 65_535)
    result = estimate_shifts(xp.asarray(stack), "first", 16)
    np.testing.assert_allclose(result.shifts, -drift, atol=0.15)
    assert any("hot or dead pixels" in note for note in result.notes)


def test_points_of_light_that_blink_are_kept(rng):
    stack = rng.normal(10, 1, (16, 64, 64))
    y, x = np.mgrid[:64, :64]
    for cy, cx in rng.uniform(8, 56, (20, 2)).round():
        for t in range(16):
            stack[t] += 400 * (rng.random() < 0.8) * np.exp(-((y - cy - 0.1 * t) ** 2 + (x - cx) ** 2) / 0.6)
    assert not any("hot" in note for note in estimate_shifts(stack, "first", 10).notes)


@pytest.mark.parametrize("count", [5, 9, 12])
def test_points_that_drift_slowly_are_kept(count):
    """They stay on one pixel for several frames, then on the next."""
    rng = np.random.default_rng(count)
    stack = rng.normal(10, 1, (count, 64, 64))
    points = rng.integers(8, 56, (12, 2))
    for t in range(count):
        stack[t, points[:, 0] + t // 2, points[:, 1]] += 300
    result = estimate_shifts(stack, "first", 10)
    assert not any("hot" in note for note in result.notes)
    np.testing.assert_allclose(result.shifts[:, 0], -(np.arange(count) // 2), atol=0.2)


@pytest.mark.parametrize(("count", "more"), [(5, "."), (6, ", ....")])
def test_the_first_five_places_are_named(count, more):
    stack = camera()
    stack[:, 3 * np.arange(count), np.arange(count) + 1] = 5000
    (note,) = weighted(ArrayFrames(stack), "first", Settings()).notes
    assert note.startswith(f"{count} hot or dead pixels")
    assert note.endswith(f"row and column (0, 1), (3, 2), (6, 3), (9, 4), (12, 5){more}")


def test_hot_pixels_next_to_each_other_are_all_repaired(xp):
    """The fainter of two stands out once the brighter one is repaired; one that flickers while the other does not."""
    drift = walk(8, 9, 1)
    stack = 500 + 8 * drifting(drift, (103, 117), width=0.06, noisy=0.5)
    rng = np.random.default_rng(4)
    places = {(int(y), int(x)) for y, x in rng.integers(8, 95, (18, 2))} | {
        (50, 60),
        (51, 61),
        (70, 0),
        (70, 1),
        (20, 30),
        (21, 30),
    }
    for y, x in places:
        stack[:, y, x] += 2500
    stack[:, (50, 70), (60, 1)] += 2000
    stack[::2, 20, 30] = stack[1::2, 21, 30] = 500
    found = weighted(ArrayFrames(xp.asarray(stack.astype(np.float32))), "first", Settings())
    assert {tuple(place) for place in found.defects.tolist()} == places
    result = estimate_shifts(xp.asarray(stack.astype(np.float32)), "first", 16)
    np.testing.assert_allclose(result.shifts, -drift, atol=0.2)


WALK = walk(5, 14, 1.2)
SHAPE = (151, 162)
BORDERS = np.random.default_rng(3).integers(-12, 13, (14, 2))


def left_out(stack):
    """What is filled, in words."""
    return weighted(ArrayFrames(stack), "first", Settings()).notes


def recorded(deviation=0.3, seed=7):
    return np.clip(np.rint(110 + 20 * drifting(WALK, SHAPE, width=0.06, seed=seed, noisy=deviation)), 0, 255).astype(
        np.uint8
    )


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
    np.testing.assert_allclose(result.shifts, -WALK, atol=0.12)
    assert result.trusted.all()
    assert any("drawn into every frame" in note for note in result.notes)


def test_a_sector_is_left_out(xp):
    stack = recorded()
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    stack[:, outside := abs(x - 80) > 0.55 * (y + 20)] = 0
    filled = weighted(ArrayFrames(xp.asarray(stack)), "first", Settings()).frames.read(0, len(stack)).frames
    hidden = (to_host(filled) != stack).any(axis=0)
    assert hidden[~outside].mean() < 0.06 < 0.98 < hidden[outside].mean()
    np.testing.assert_allclose(estimate_shifts(xp.asarray(stack), "first", 20).shifts, -WALK, atol=0.12)


def with_borders(stack, widths):
    for frame, (top, left) in zip(stack, widths, strict=True):
        frame[: max(top, 0)] = 0
        frame[SHAPE[0] + min(top, 0) :] = 0
        frame[:, : max(left, 0)] = 0
        frame[:, SHAPE[1] + min(left, 0) :] = 0
    return stack


def test_borders_of_frames_that_were_moved_before_are_left_out(xp):
    result = estimate_shifts(xp.asarray(with_borders(recorded(), BORDERS)), "first", 20)
    np.testing.assert_allclose(result.shifts, -WALK, atol=0.12)
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


@pytest.mark.parametrize("size", [1.0, 1.6])
def test_digits_of_a_clock_that_change_do_not_hold_a_faint_scene(size):
    """Of a digit a part is there in all frames, and the rest now and then: without that errors were 1 to 10 px."""
    path = walk(3, 20, 1.0)
    clean = drifting(path, shape=(160, 160), width=0.08)
    noisy = 120 + 6 * clean / clean.std() + np.random.default_rng(1).normal(0, 22, clean.shape)
    stack = noisy.clip(0, 255).round().astype(np.uint8)
    for t, frame in enumerate(stack):
        cv2.putText(frame, f"{t // 3:02d}:{17 * t % 60:02d}.{7 * t % 10}", (6, 30), 0, size, 255, int(2 * size))
    assert np.median(np.abs(estimate_shifts(stack, "first", 40).shifts + path)) < 0.3
