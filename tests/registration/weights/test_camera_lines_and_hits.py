"""Stuck lines of a camera, and pixels hit in one frame alone, do not decide where frames lie."""

from __future__ import annotations

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise, walk
from xcorr_app import estimate_shifts
from xcorr_app.registration.weights.lines import stuck_lines

COUNT = 14
DRIFT = walk(6, COUNT, 1.0)


def camera(shape=(144, 137)):
    clean = drifting(DRIFT, shape, width=0.06)
    return np.clip(np.rint(300 + 30 * (clean + noise(clean, 0.5))), 0, None).astype(np.uint16)


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


@pytest.mark.parametrize("line", [0, 1, 2, -3, -2, -1])
def test_stuck_lines_at_a_rim_are_found(line):
    for images in (camera(), camera().transpose(0, 2, 1)):
        images[:, line] = 5000
        assert np.flatnonzero(stuck_lines(images).mean(axis=1) > 0.5).tolist() == [line % images.shape[1]]


@pytest.mark.parametrize("other", [5, 9])
def test_half_a_stuck_line_does_not_pin_a_pair(xp, other):
    stack = camera()[[0, other]]
    stack[:, 70:, 41] = 900
    result = estimate_shifts(xp.asarray(stack), max_shift=20)
    np.testing.assert_allclose(result.shifts[1], -DRIFT[other], atol=0.1)


def test_lines_of_a_sound_camera_are_not_stuck(xp):
    assert not stuck_lines(xp.asarray(camera())).any()
    moving = camera()
    for t, frame in enumerate(moving):
        frame[:, 30 + t] += 5000
    assert not stuck_lines(xp.asarray(moving)).any()


@pytest.mark.parametrize("seed", [1, 2])
def test_cosmic_rays_do_not_outvote_faint_stars(xp, seed):
    stack, rng = stars(seed), np.random.default_rng(seed + 10)
    for frame in stack:
        y, x = rng.integers(0, 137, (2, 9))
        frame[y, x] += 300 + rng.exponential(3000, 9)
    result = estimate_shifts(xp.asarray(stack), "first", 24)
    np.testing.assert_allclose(result.shifts, -DRIFT, atol=0.35)
    assert any("cosmic rays" in note for note in result.notes)


def test_thin_lines_of_a_scene_are_not_stuck():
    rng = np.random.default_rng(11)
    place = 0.1 * np.cumsum(rng.normal(size=COUNT))
    stack = camera().astype(float)
    y = np.arange(144)[:, None]
    for frame, moved in zip(stack, place, strict=True):
        for row in (30, 57, 81):
            frame += 600 * np.exp(-((y - row - moved) ** 2) / (2 * 0.4**2))
    assert not stuck_lines(stack).any()
