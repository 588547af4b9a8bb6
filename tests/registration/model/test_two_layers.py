"""Shifts of a scene over a layer that stands still are as sure as noise allows, and standard errors say so."""

import numpy as np
import pytest

from tests.registration.scenes import noise
from xcorr_app.registration.model.two_layers import TwoLayers

COUNT, SIZE, MARGIN = 12, 112, 24
STEPS = np.linspace(0, 1, COUNT)
PATH = np.column_stack([5 * np.sin(3 * STEPS), 4 * STEPS**2])


def views(seed, path):
    """A texture of unit deviation, moved by phases."""
    side = SIZE + 2 * MARGIN
    y, x = np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)[None]
    spectrum = np.fft.rfft2(np.random.default_rng(seed).normal(size=(side, side))) * np.exp(-(y**2 + x**2) / 0.0128)
    spectrum /= np.fft.irfft2(spectrum, (side, side)).std()
    moved = (np.fft.irfft2(spectrum * np.exp(-2j * np.pi * (y * dy + x * dx)), (side, side)) for dy, dx in path)
    return np.stack([each[MARGIN:-MARGIN, MARGIN:-MARGIN] for each in moved])


def camera(seed):
    """Columns and pixels, three times as strong as the scene."""
    rng = np.random.default_rng(seed)
    return 3 * rng.normal(size=SIZE) + 3 * rng.normal(size=(SIZE, SIZE))


def recorded(seed, path=PATH):
    frames = views(seed, path) + camera(seed + 100)
    frames += np.random.default_rng(seed + 200).normal(0, 0.2, frames.shape)
    return frames.astype(np.float32) - frames.mean(axis=(1, 2), keepdims=True, dtype=np.float32)


def test_standard_errors_of_a_scene_over_a_camera_are_those_of_its_errors(xp):
    ratios = []
    for seed in range(4):
        begin = -PATH + noise(PATH, 0.1, seed)
        layers = TwoLayers(xp.asarray(recorded(seed)), begin)
        sigma = layers.fit()
        error = layers.shifts - layers.shifts[0] + PATH
        ratios.append(error[1:] / sigma[1:])
        assert np.abs(error).max() < 0.05
    assert 0.6 < np.sqrt(np.mean(np.square(ratios))) < 1.5


def test_shifts_keep_their_length_where_the_scene_hardly_moves():
    """The determinant of both layers depends on motions against each other, not on where frames lie together."""
    layers = TwoLayers(recorded(2, 0.2 * PATH), -0.2 * PATH + noise(PATH, 0.03, 2))
    layers.fit()
    assert -np.sum((layers.shifts - layers.shifts[0]) * PATH) / np.sum(PATH**2) == pytest.approx(0.2, abs=0.02)


def test_further_frames_are_placed_over_the_layers_of_the_first(xp):
    path = np.concatenate([PATH, PATH[4:8] + 0.4])
    frames = xp.asarray(recorded(7, path))
    layers = TwoLayers(frames[:COUNT], -PATH)
    layers.fit()
    shifts, sigma = layers.placed(frames[COUNT:], -path[COUNT:] + 0.1)
    assert np.abs(shifts - layers.shifts[0] + path[COUNT:]).max() < 0.05
    assert ((sigma > 0.002) & (sigma < 0.02)).all()


@pytest.mark.parametrize("strength", [1.0, 1e-30, 1e30])
def test_values_of_any_size_give_the_same_shifts(strength):
    frames = recorded(3)
    layers, other = TwoLayers(frames, -PATH), TwoLayers(frames * np.float32(strength), -PATH)
    for each in (layers, other):
        each.fit()
    assert np.allclose(layers.shifts, other.shifts, atol=1e-3)
