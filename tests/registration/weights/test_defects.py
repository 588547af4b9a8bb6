"""Hot and dead pixels do not pin the shifts."""

import numpy as np
import pytest

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
    stack[:, 30, 41] = value
    stack[:, 70, 12] = 0
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
    clean = drifting(drift, (103, 117), width=0.06)
    stack = 500 + 8 * (clean + noise(clean, 0.5))
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
