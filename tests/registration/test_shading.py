"""Vignetting and other shading that stands still, brighter than the scene that moves over it."""

import numpy as np
import pytest

import xcorr_app as xc
from tests.registration.scenes import drifting, rms, texture
from xcorr_app.registration import shading


def seen(scene, places, shape):
    """Frames of a scene at whole places, and the shifts that align them."""
    frames = np.stack([scene[y : y + shape[0], x : x + shape[1]] for y, x in places])
    return frames, np.subtract(places, places[0]).astype(float)


def radius(shape):
    y, x = (np.linspace(-1, 1, side) for side in shape)
    return np.hypot(y[:, None], x[None])


def test_a_faint_scene_under_vignetting():
    rng = np.random.default_rng(31)
    shape, places = (147, 163), rng.integers(0, 12, (14, 2))
    frames, truth = seen(texture((160, 176), rng, 2.5, "wrap"), places, shape)
    light = 20000 * np.cos(0.8 * radius(shape)) ** 4
    stack = rng.poisson(light * (1 + 0.01 * frames)).astype(np.uint16)
    plain = xc.estimate_shifts(stack, contrast="none", max_shift=20)
    assert np.abs(plain.shifts - truth).max() > 2  # the light holds them
    found = xc.estimate_shifts(stack, max_shift=20)
    assert found.trusted.all()
    assert np.sqrt(((found.shifts - truth) ** 2).mean()) < 0.1
    assert any("Uneven brightness" in note for note in found.notes)


def test_a_camera_with_shading_and_a_pattern_of_its_pixels():
    rng = np.random.default_rng(32)
    shape, places = (141, 157), rng.integers(0, 10, (20, 2))
    frames, truth = seen(texture((151, 167), rng, 4, "wrap"), places, shape)
    still = 70 * radius(shape) ** 2 + 6 * rng.normal(size=shape)
    stack = (8000 + 12 * frames + still + 4 * rng.normal(size=frames.shape)).round().astype(np.uint16)
    found = xc.estimate_shifts(stack, max_shift=16)
    assert np.abs(found.shifts - truth)[found.trusted].max() < 0.3
    assert found.trusted.mean() > 0.9


@pytest.mark.parametrize("seed", [36, 37])
def test_shading_that_no_frame_alone_tells(seed):
    """It holds shifts of half a pixel by a fifth, less than three standard errors of any: all together tell."""
    rng, shape = np.random.default_rng(seed), (80, 214)
    drift = np.concatenate([[[0, 0]], rng.uniform(-0.8, 0.8, (9, 2))])
    light = 250 * (1 - 0.35 * radius(shape) ** 2)
    found = xc.estimate_shifts(rng.poisson(light * (1 + 0.1 * drifting(drift, shape, seed=seed))).astype(np.uint16))
    assert rms(found.shifts + drift) < 0.06


def test_a_smooth_thing_that_moves_is_the_scene():
    rng = np.random.default_rng(33)
    shape, places = (121, 133), rng.integers(0, 14, (9, 2))
    y, x = np.mgrid[:135, :147]
    blob = 300 * np.exp(-(((y - 66) / 40) ** 2 + ((x - 71) / 45) ** 2))
    frames, truth = seen(blob + texture((135, 147), rng, 3, "wrap"), places, shape)
    stack = (1000 + frames + rng.normal(size=frames.shape)).astype(np.float32)
    assert shading._share(shading._binned(stack[:1])[0]) > 0.9
    found = xc.estimate_shifts(stack, max_shift=16)
    assert not any("Uneven brightness" in note for note in found.notes)
    assert np.abs(found.shifts - truth).max() < 0.2
