"""Standard errors of shifts that phases tell, where photons scatter most on what tells them."""

import numpy as np
import pytest

from xcorr_app import estimate_shifts
from xcorr_app.registration.measuring.score_tiles import is_peaked


def stars(seed, count, flux, frames=8, shape=(200, 231), width=0.8, background=10.0):
    """Counts of photons of stars that drift (frames, h, w), and shifts (frames, 2) that undo it."""
    rng = np.random.default_rng(seed)
    drift = np.cumsum(rng.normal(0, 0.8, (frames, 2)), axis=0)
    places, light = rng.uniform(-15, np.array(shape) + 15, (count, 2)), flux * rng.exponential(1, count)
    y, x = (
        np.exp(-((np.arange(size) - (places[:, axis, None] + drift[:, None, None, axis])) ** 2) / 2 / width**2)
        for axis, size in enumerate(shape)
    )
    scenes = np.einsum("n,tny,tnx->tyx", light / (2 * np.pi * width**2), y, x) + background
    return rng.poisson(scenes).astype(np.float32), drift[0] - drift


@pytest.mark.parametrize(("count", "flux"), [(600, 300), (600, 3000), (100, 3000)])
def test_standard_errors_of_stars_know_that_photons_scatter(xp, count, flux):
    """By noise that is even on average they were several times too small."""
    over = []
    for seed in range(3):
        frames, shifts = stars(seed, count, flux)
        found = estimate_shifts(xp.asarray(frames))
        over.append(((found.shifts - shifts) / found.sigma)[1:])
    assert 0.5 < np.sqrt(np.mean(np.square(over))) < 1.8


def test_textures_are_not_peaked_and_stars_are(rng):
    assert not is_peaked(rng.normal(size=(1, 90, 81)))
    assert is_peaked(stars(1, 600, 300, frames=1)[0])
