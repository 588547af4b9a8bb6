"""Series that hardly move are asked whether a pattern that outshines the scene holds them; as a rule none does."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, shift
from scipy.signal import lfilter

from tests.registration.scenes import texture
from xcorr_app import estimate_shifts


def series(seed, count, shape, drift, snr):
    """Frames of a scene that drifts by so many pixels down, half of it to the left, under noise."""
    big = texture([side + 32 for side in shape], seed, 2.0)
    path = np.linspace(0, 1, count)[:, None] * np.array([drift, -drift / 2])
    frames = np.stack([shift(big, -step, order=5)[16:-16, 16:-16] for step in path])
    noise = np.random.default_rng(seed + 1).normal(size=frames.shape) / snr
    return 1000 + 100 * (frames + noise), path


@pytest.mark.share(3)
@pytest.mark.parametrize(("drift", "snr"), [(0.3, 1.0), (0.8, 0.5), (0.0, 0.7)])
@pytest.mark.parametrize("seed", [0, 10])
def test_a_plain_series_stays_trusted(seed, drift, snr):
    stack, path = series(seed, 30, (110, 120), drift, snr)
    result = estimate_shifts(stack.astype(np.float32))
    assert result.trusted.mean() > 0.9
    assert np.sqrt(np.mean((result.shifts - path) ** 2)) < 0.1 / snr


@pytest.mark.share(2)
@pytest.mark.parametrize("count", [10, 20])
def test_focus_that_sweeps_is_no_motion(count):
    still = texture((182, 202), 0, 2.0)[16:-16, 16:-16]
    noise = np.random.default_rng(1).normal(size=(count, *still.shape)) / 10
    stack = np.stack([gaussian_filter(still, 0.1 + 2 * abs(i / count - 0.5)) for i in range(count)]) + noise
    result = estimate_shifts((1000 + 100 * stack).astype(np.float32))
    assert np.abs(result.shifts[result.trusted]).max() < 0.05


@pytest.mark.share(3)
@pytest.mark.parametrize("seed", [0, 3, 4])
def test_light_that_flashes_in_some_frames_is_no_scene_over_a_still_one(seed):
    """A spot that is lit in every fifth frame moves nothing; the shifts measured say that all frames move."""
    rng = np.random.default_rng(seed)
    big = np.clip(texture((202, 212), seed, 1.8), 0, None)
    path = np.cumsum(rng.normal(0, 0.4, (24, 2)), axis=0)
    stack = np.stack([20 + 60 * shift(big, step, order=3)[16:-16, 16:-16].clip(0) for step in path - path[0]])
    y, x = np.mgrid[: stack.shape[1], : stack.shape[2]]
    stack[3::5] += 4000 * np.exp(-((y - 80) ** 2 + (x - 100) ** 2) / 400)
    result = estimate_shifts(rng.poisson(stack).astype(np.uint16))
    assert not any("fixed pattern" in note for note in result.notes)
    error = (result.shifts + path)[result.trusted]
    assert len(error) >= 19
    np.testing.assert_allclose(error - error.mean(axis=0), 0, atol=0.15)


def broken_clusters(rng, shape):
    """Bright places of all sizes, with sharp edges."""
    frequency = np.hypot(np.fft.fftfreq(shape[0])[:, None], np.fft.rfftfreq(shape[1]))
    power = np.maximum(frequency, 2 / max(shape)) ** -1.2
    image = np.fft.irfft2(np.fft.rfft2(rng.normal(size=shape)) * power, shape)
    return gaussian_filter((image - image.mean() > 0.3 * image.std()).astype(float), 1.1)


@pytest.mark.share(2)
@pytest.mark.parametrize("seed", [1, 7])
def test_a_charge_that_builds_up_is_no_pattern(seed):
    """Dark trails beside bright things grow along the lines of a scan, and move with the scene; a glow grows, too."""
    count, shape = 16, (192, 256)
    rng = np.random.default_rng(seed)
    big = broken_clusters(rng, [side + 32 for side in shape])
    path = np.cumsum(rng.normal((0.1, -0.5), 0.4, (count, 2)), axis=0)
    path -= path[0]
    y, x = np.mgrid[: shape[0], : shape[1]]
    glow = np.exp(-((y - 60) ** 2 + (x - 110) ** 2) / 3000)
    frames = []
    for t, step in enumerate(path):
        view = shift(big, step, order=3)[16:-16, 16:-16]
        trail = lfilter([1.0], [1.0, -0.93], view, axis=1)
        frames.append(60 + 80 * view + t / count * (50 * glow - 3.3 * trail) + rng.normal(0, 8, shape))
    result = estimate_shifts(np.clip(np.rint(frames), 0, 255).astype(np.uint8))
    assert not any("fixed pattern" in note for note in result.notes)
    assert np.abs(result.shifts + path)[result.trusted].max() < 0.4
