"""Stuck lines of a camera, and pixels hit in one frame alone, do not decide where frames lie."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts
from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.registration.artefacts.single_hits import HitFreeFrames, without_hits
from xcorr_app.registration.artefacts.stuck_lines import lines_in_words
from xcorr_app.registration.artefacts.stuck_lines import stuck_lines as stuck_lines_of
from xcorr_app.registration.stack.frames import ArrayFrames

COUNT = 14
DRIFT = np.cumsum(np.random.default_rng(6).normal(0, 1.0, (COUNT, 2)), axis=0)
DRIFT -= DRIFT[0]


def camera(shape=(144, 137)):
    clean = drifting(DRIFT, shape, width=0.06)
    return np.clip(np.rint(300 + 30 * (clean + noise(clean, 0.5))), 0, None).astype(np.uint16)


def stuck_lines(stack):
    frames = ArrayFrames(stack)
    return stuck_lines_of(frames, frames.read(0, 1))


def stars(seed=1, shape=(144, 137), faintest=60):
    rng = np.random.default_rng(seed)
    places, height = rng.uniform(10, 130, (9, 2)), rng.uniform(faintest, 300, 9)
    y, x = np.mgrid[: shape[0], : shape[1]]
    sky = np.full((COUNT, *shape), 50.0)
    for t, (dy, dx) in enumerate(DRIFT):
        for (cy, cx), a in zip(places, height, strict=True):
            sky[t] += a * np.exp(-((y - cy - dy) ** 2 + (x - cx - dx) ** 2) / 4)
    return rng.poisson(sky).astype(float) + rng.normal(0, 4, sky.shape)


def test_stuck_lines_do_not_pin_the_shifts(xp):
    stack = camera()
    stack[:, :, 40], stack[:, :, 90:92], stack[:, 70:, 20] = 0, 65535, 3000
    stack[:, 55] = 9000
    result = estimate_shifts(xp.asarray(stack), "first", 20)
    np.testing.assert_allclose(result.shifts, -DRIFT, atol=0.1)
    assert any("row 55 and columns 20, 40, 90, 91" in note for note in result.notes)


def test_lines_of_a_sound_camera_are_not_stuck(xp):
    assert stuck_lines(xp.asarray(camera())) is None
    moving = camera()
    for t, frame in enumerate(moving):
        frame[:, 30 + t] += 5000
    assert stuck_lines(xp.asarray(moving)) is None


def test_part_of_a_line_is_enough():
    stack = camera()
    stack[:, 100:, 33] = 4000
    found = stuck_lines(stack)
    assert found[110:, 33].all()
    assert not found[:80].any()
    assert lines_in_words(found) == "column 33"


@pytest.mark.parametrize("seed", [1, 2])
def test_cosmic_rays_do_not_outvote_faint_stars(xp, seed):
    stack, rng = stars(seed), np.random.default_rng(seed + 10)
    for frame in stack:
        y, x = rng.integers(0, 137, (2, 9))
        frame[y, x] += 300 + rng.exponential(3000, 9)
    result = estimate_shifts(xp.asarray(stack), "first", 24)
    np.testing.assert_allclose(result.shifts, -DRIFT, atol=0.35)
    assert any("cosmic rays" in note for note in result.notes)


@pytest.mark.parametrize("seed", [11, 12])
def test_two_cosmic_rays_a_frame(seed):
    """Of few hits, many frames tell."""
    rng, stack = np.random.default_rng(seed), 300 + stars(seed)
    for frame in stack:
        y, x = rng.integers(0, 130, (2, 2))
        frame[y, x] = rng.uniform(5000, 60000, 2)
    result = estimate_shifts(stack.round().astype(np.uint16), "first", 20)
    np.testing.assert_allclose(result.shifts, -DRIFT, atol=0.25)
    assert result.trusted.all()
    assert any("hit in one frame alone" in note for note in result.notes)


def test_what_stays_on_its_pixel_says_nothing_of_hits(rng):
    stack = rng.normal(100, 1, (10, 130, 135))
    stack[:, [20, 41, 70], [31, 80, 52]] += 200
    for frame in stack:
        frame[rng.integers(2, 128, 3), rng.integers(2, 133, 3)] += 900
    assert isinstance(without_hits(ArrayFrames(stack)), HitFreeFrames)


def test_points_that_move_together_are_no_hits(rng):
    stack = rng.normal(10, 1, (8, 96, 96))
    points = rng.integers(20, 76, (24, 2))
    for t in range(8):
        stack[t, points[:, 0] + t, points[:, 1] - 2 * t] += 200
    assert not isinstance(without_hits(ArrayFrames(stack)), HitFreeFrames)


def test_a_hit_is_the_mean_of_what_is_around_it(xp, rng):
    stack = rng.normal(100, 1, (3, 40, 44)).astype(np.float32)
    hit = stack.copy()
    hit[1, 12, 30] += 500
    found = to_host(HitFreeFrames(ArrayFrames(xp.asarray(hit)), 1).read(0, 3).frames)
    stack[1, 12, 30] = hit[1, [11, 13, 12, 12], [30, 30, 29, 31]].mean()
    np.testing.assert_allclose(found, stack, rtol=1e-6)


def test_thin_lines_of_a_scene_are_not_stuck():
    rng = np.random.default_rng(11)
    place = 0.1 * np.cumsum(rng.normal(size=COUNT))
    stack = camera().astype(float)
    y = np.arange(144)[:, None]
    for frame, moved in zip(stack, place, strict=True):
        for row in (30, 57, 81):
            frame += 600 * np.exp(-((y - row - moved) ** 2) / (2 * 0.4**2))
    assert stuck_lines(stack) is None


def test_points_that_lie_on_one_pixel_now_and_then_are_no_hits():
    """Stars of a width of 0.4 pixels: alone where they lie on the middle of a pixel."""
    rng = np.random.default_rng(1)
    places, height = rng.uniform(8, 130, (70, 2)), rng.uniform(60, 200, 70)
    sky = np.full((COUNT, 144, 137), 50.0)

    def light(size, place):
        edges = (np.arange(size + 1) - 0.5 - place) / (0.4 * np.sqrt(2))
        return np.diff(special.erf(edges)) / 2

    for frame, (dy, dx) in zip(sky, DRIFT, strict=True):
        for (y, x), a in zip(places, height, strict=True):
            frame += a * np.outer(light(144, y + dy), light(137, x + dx))
    sky += rng.normal(0, 4, sky.shape)
    assert not isinstance(without_hits(ArrayFrames(sky)), HitFreeFrames)
