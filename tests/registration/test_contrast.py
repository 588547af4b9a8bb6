"""Local contrast: what it computes, and that it finds what stands still."""

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise, particles, walk
from xcorr_app import estimate_shifts
from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.registration.stack.prefilter import Contrast


@pytest.mark.share(2)
@pytest.mark.parametrize(("brightness", "deviation"), [(60.0, 0.5), (25.0, 1.3)])
def test_what_is_drawn_into_frames_does_not_hold_them(brightness, deviation):
    """A time stamp of which some digits change, and a scale bar: they stand still, to a hundredth of a pixel."""
    drift = np.concatenate([np.zeros((1, 2)), np.linspace((8 / 3, -22 / 9), (8, -6), 9)])
    stack = drifting(drift, shape=(160, 170), width=0.06)
    stack += noise(stack, deviation)
    digits = np.random.default_rng(3).random((10, 7, 45)) > 0.5
    digits[1:, :, :30] = digits[0, :, :30]
    stack[:, 4:18, 4:94][digits.repeat(2, axis=1).repeat(2, axis=2)] = brightness
    stack[:, 140:146, 90:165] = brightness
    result = estimate_shifts(stack, "first", 20)
    np.testing.assert_allclose(result.shifts, -drift, atol=0.5)
    assert result.trusted.all()


@pytest.mark.parametrize("width", [0.06, 0.1])
def test_a_frame_that_light_hides_is_found(width):
    """Of a few frames that are spread over the stack it is none: those that are lost as they are, are tried too."""
    path, (y, x) = walk(3, 7, 1.5), np.ogrid[:150, :160]
    glow = np.exp(-((y - 40) ** 2 + (x - 110) ** 2) / 3200)
    stack = drifting(path, shape=(150, 160), width=width, noisy=0.3)
    stack[[0, 3]] += 5 * glow[::-1, ::-1], 10 * glow
    result = estimate_shifts(stack, "first")
    np.testing.assert_allclose(result.shifts, -path, atol=0.1)
    assert result.trusted.all()


def test_one_thing_that_outshines_the_scene_does_not_lead_it():
    """A bright organ beats in a body that drifts: all tiles but its own are below what tells in a frame."""
    count, shape = 26, (150, 160)
    drift = np.stack([np.linspace(0, 5, count), np.linspace(0, -3, count)], axis=1)
    phase, (y, x) = np.arange(count), np.ogrid[: shape[0], : shape[1]]
    place = drift + np.stack([3 * np.sin(1.3 * phase), 2.5 * (np.cos(1.1 * phase) - 1)], axis=1)
    stack = 100 + 10 * drifting(drift, shape=shape, width=0.06)
    for frame, (dy, dx) in zip(stack, place, strict=True):
        frame += 2500 * np.exp(-((y - 90 - dy) ** 2 + (x - 80 - dx) ** 2) / (2 * 9**2))
    result = estimate_shifts((stack + noise(stack, 3)).astype(np.float32), "first", 20)
    assert np.sqrt(np.mean((result.shifts + drift) ** 2)) < 0.3
    # Twice all frames, and trials of some: what that took is told.
    assert all(
        any(words in note for note in result.notes) for words in ("local contrast", "measurements of all frames")
    )


@pytest.mark.parametrize(("brightness", "deviation", "seed"), [(50, 8, 4), (35, 12, 6), (25, 12, 5), (25, 12, 7)])
def test_light_that_moves_does_not_lead_faint_particles(brightness, deviation, seed):
    """Of a glow most of a tile's variance is a plane, which says little of where it lies.

    Of fainter ones it is led 30 px away, or found by some frames alone: then it is open what the scene is.
    """
    count, shape = 12, (155, 170)
    drift = np.stack([np.linspace(0, 3, count), np.linspace(0, -2, count)], axis=1)
    y, x = (np.arange(size) / shape[0] for size in shape)
    stack = brightness * particles(drift, shape, seed)
    for t, frame in enumerate(stack):
        frame += 300 * np.exp(-((y[:, None] - 0.3 - 0.02 * t) ** 2 + (x - 0.4 - 0.01 * t) ** 2) / 0.1)
    result = estimate_shifts((stack + noise(stack, deviation, seed)).astype(np.float32), "first", 38)
    assert result.trusted.all() or brightness < 50
    assert np.abs(result.shifts + drift)[result.trusted].max(initial=0) < 0.6


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.float64])
def test_flat_places_stay_flat(xp, dtype):
    frames = np.full((2, 96, 96), 7, dtype)
    frames[1, :40] += np.random.default_rng(0).integers(0, 9, (40, 96)).astype(dtype)
    local = to_host(Contrast(4.0)(xp.asarray(frames)))
    assert np.isfinite(local).all()
    assert np.abs(local[0]).max() < 1e-3
    assert np.abs(local[1, 80:]).max() < 1e-3


@pytest.mark.parametrize("text", ["none", "auto", "local:8", "local:2.5"])
def test_text_that_is_understood(text):
    assert str(Contrast.parse(text)) == text


@pytest.mark.share(4)
@pytest.mark.parametrize("reference", ["first", "previous", "last", 4])
def test_auto_follows_the_background_and_not_the_particles(xp, reference):
    """Bright particles that drift over a faint background that stands still."""
    background = drifting([(0, 0)] * 10, shape=(160, 160), width=0.08, contrast=0.1, noisy=0.01)
    stack = xp.asarray(particles(np.arange(10)[:, None] * [0.9, 0.7], (160, 160), 5) + background)
    result, plain = (estimate_shifts(stack, reference, 20, contrast=way) for way in ("auto", "none"))
    assert np.abs(result.shifts).max() < 0.4 * np.abs(plain.shifts).max()
    assert any("local contrast" in note for note in result.notes)
