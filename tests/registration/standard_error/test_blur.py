"""Frames averaged in time: what moves meanwhile is in standard errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import uniform_filter1d

from xcorr_app.registration.standard_error.blur import blur

ALL = np.ones(400, dtype=bool)


@pytest.mark.parametrize("reach", [1, 3])
def test_steps_by_chance_are_as_unsure_as_they_are_off(rng, reach):
    path = np.cumsum(rng.normal(0, 0.3, (400, 2)), axis=0)
    found = uniform_filter1d(path, 2 * reach + 1, axis=0, mode="nearest") + rng.normal(0, 0.004, path.shape)
    error, expected = found - path, blur(found, np.full(path.shape, 0.004), ALL, None, reach)
    inner = slice(2 * reach, -2 * reach)
    # 800 errors, of which neighbours are alike: their scatter is known to a tenth.
    assert 0.75 < np.sqrt((error[inner] ** 2).mean() / (expected[inner] ** 2).mean()) < 1.33


def test_what_stands_still_adds_no_more_than_noise(rng):
    found = rng.normal(0, 0.01, (400, 2))
    found = uniform_filter1d(found, 5, axis=0, mode="nearest")
    assert np.median(blur(found, np.full(found.shape, 0.01 / np.sqrt(5)), ALL, None, 2)) < 0.01 / np.sqrt(5)


def test_a_drift_in_a_line_pulls_at_the_ends_alone_and_wrong_frames_do_not(rng):
    path = np.linspace(0, 40, 400)[:, None] * [1.0, -0.5]
    trusted = ALL.copy()
    trusted[200] = False
    path[200] = 90.0, np.nan
    off = blur(path, np.full(path.shape, 1e-3), trusted, None, 2)
    assert off[10:-10].max() < 1e-6 < 0.05 < off[0, 0]
    relative = blur(path, np.full(path.shape, 1e-3), trusted, 0, 2)
    assert (relative[0] == 0).all()
    assert relative[10:-10, 0].min() > 0.05


def test_single_frames_are_not_blurred():
    assert not blur(np.ones((3, 2)), np.ones((3, 2)), np.ones(3, dtype=bool), 0, 0).any()
