"""Series that hardly move are asked whether a pattern that outshines the scene holds them; as a rule none does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, shift

from xcorr_app import estimate_shifts


def scene(seed, shape, width=2.0):
    big = gaussian_filter(np.random.default_rng(seed).normal(size=[side + 32 for side in shape]), width)
    return big / big.std()


def series(seed, count, shape, drift, snr):
    """Frames of a scene that drifts by so many pixels down, half of it to the left, under noise."""
    big = scene(seed, shape)
    path = np.linspace(0, 1, count)[:, None] * np.array([drift, -drift / 2])
    frames = np.stack([shift(big, -step, order=5)[16:-16, 16:-16] for step in path])
    noise = np.random.default_rng(seed + 1).normal(size=frames.shape) / snr
    return 1000 + 100 * (frames + noise), path


@pytest.mark.parametrize(("drift", "snr"), [(0.3, 1.0), (0.8, 0.5), (0.0, 0.7)])
@pytest.mark.parametrize("seed", [0, 10])
def test_a_plain_series_stays_trusted(seed, drift, snr):
    stack, path = series(seed, 30, (110, 120), drift, snr)
    result = estimate_shifts(stack.astype(np.float32))
    assert result.trusted.mean() > 0.9
    assert np.sqrt(np.mean((result.shifts - path) ** 2)) < 0.1 / snr


@pytest.mark.parametrize(("dtype", "scale"), [("float32", 1e-30), ("float64", 1e100), ("float64", 1e-200)])
def test_whatever_the_unit_of_the_pixels(dtype, scale):
    stack, path = series(3, 18, (128, 138), 0.8, 2.0)
    result = estimate_shifts((stack * scale).astype(dtype))
    assert result.trusted.all()
    np.testing.assert_allclose(result.shifts, path, atol=0.15)


@pytest.mark.parametrize("count", [10, 20])
def test_focus_that_sweeps_is_no_motion(count):
    still = scene(0, (150, 170))[16:-16, 16:-16]
    noise = np.random.default_rng(1).normal(size=(count, *still.shape)) / 10
    stack = np.stack([gaussian_filter(still, 0.1 + 2 * abs(i / count - 0.5)) for i in range(count)]) + noise
    result = estimate_shifts((1000 + 100 * stack).astype(np.float32))
    assert np.abs(result.shifts[result.trusted]).max() < 0.05
