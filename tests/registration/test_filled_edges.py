"""Frames that end in something else than the scene: what was filled in does not pull the shift."""

from __future__ import annotations

import numpy as np
import pytest

from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts

STEPS = np.arange(16)


def moved_and_filled(fill, deviation):
    """A scene moved by whole pixels along the diagonal, filled on two sides, in noise."""
    scene = drifting([(0, 0)], shape=(180, 200), width=0.11, seed=3)[0]
    frames = np.full((STEPS.size, *scene.shape), fill, dtype=float)
    for k in STEPS:
        frames[k, k:, k:] = scene[: scene.shape[0] - k, : scene.shape[1] - k]
    return frames + noise(frames, deviation)


@pytest.mark.parametrize("fill", [3.0, -2.0])
@pytest.mark.parametrize(("deviation", "weighting"), [(0.05, "none"), (0.3, "auto"), (0.5, "auto")])
def test_no_bias(xp, fill, deviation, weighting):
    stack = xp.asarray(moved_and_filled(fill, deviation))
    result = estimate_shifts(stack, "first", 24, contrast="none", weighting=weighting)
    error = (result.shifts + np.stack([STEPS, STEPS], axis=1))[1:]
    # All frames share the noise of the reference: their mean scatters about as much as each of them.
    assert np.abs(error.mean(axis=0)).max() < 1.5 * result.sigma[1:].mean()
    assert np.sqrt((error**2).mean()) < 1.5 * np.sqrt((result.sigma[1:] ** 2).mean())
