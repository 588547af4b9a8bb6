"""Frames of one stack, whose tiles are few, tell each other's standard errors, but for those that differ."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from tests.registration.scenes import drifting
from xcorr_app import estimate_shifts
from xcorr_app.registration.standard_error.peak_shapes import PeakShapes

COUNT, SHAPE, SNR = 41, (64, 72), 4.0


def of_stack(noisier, blurred, seed):
    """Standard errors of frames of few tiles with so much noise each, some out of focus; and each in a pair."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(-3, 3, (COUNT, 2)) * (np.arange(COUNT) > 0)[:, None]
    clean = drifting(places, shape=SHAPE, seed=seed)
    views = np.stack([gaussian_filter(view, width) for view, width in zip(clean, blurred, strict=True)])
    stack = views + rng.normal(size=clean.shape) * clean.std() / SNR * noisier[:, None, None]
    together = estimate_shifts(stack, "first", 6, contrast="none", weighting="none").sigma[1:]
    alone = [estimate_shifts(stack[[0, t]], "first", 6, contrast="none", weighting="none").sigma[1] for t in some]
    return together, np.array(alone)


some = range(1, COUNT)
same, sharp = np.ones(COUNT), np.zeros(COUNT)


def scatter(sigma):
    return np.log(sigma).std(axis=0).mean()


def test_frames_alike_have_standard_errors_alike():
    found = [of_stack(same, sharp, seed) for seed in range(3)]
    assert np.mean([scatter(together) for together, _ in found]) < 0.7 * np.mean([scatter(alone) for _, alone in found])
    # Not wider than those of one frame, whose few tiles are a doubt of their own, and not by much narrower.
    level = np.mean([np.log(together / alone).mean() for together, alone in found])
    assert -0.12 < level < 0.02


def test_a_stack_half_of_which_is_noisier_keeps_different_standard_errors():
    noisy = np.arange(COUNT) % 2 == 1
    for seed in range(3):
        together, alone = of_stack(np.where(noisy, 3.0, 1.0), sharp, seed)
        of_noisy, of_others = (np.log(together / alone)[noisy[1:] == which].mean() for which in (True, False))
        assert abs(of_noisy - of_others) < 0.1


@pytest.mark.parametrize(("noise", "blur"), [(3.0, 0.0), (1.0, 4.0)])
def test_one_frame_that_shows_less_is_as_unsure_as_it_is_alone(noise, blur):
    one = np.arange(COUNT) == 17
    for seed in range(3):
        together, alone = of_stack(np.where(one, noise, 1.0), np.where(one, blur, 0.0), seed)
        mine = one[1:]
        assert np.median(together[~mine]) < alone[mine].min()
        assert (together[mine] > 0.8 * alone[mine]).all()


def test_a_pair_is_as_sure_as_its_own_tiles_say():
    shapes = PeakShapes.empty(2)
    shapes.scatter[:], shapes.hessian[:], shapes.height[:] = np.eye(2) * 1e-6, -np.eye(2) * 0.1, 1.0
    shapes.quartic[:] = 0.0
    shapes.scatter[1] *= 4
    shapes.freedom[:] = 3.0
    np.testing.assert_allclose(shapes.standard_errors(np.full(2, 50.0)), [[0.01, 0.01], [0.02, 0.02]])
