"""Frames of one stack, whose tiles are few, tell each other's standard errors, but for those that differ."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from tests.registration.scenes import drifting
from xcorr_app import estimate_shifts
from xcorr_app.registration.standard_error.peak_shapes import PeakShapes

COUNT, SNR = 41, 4.0
MATES = np.stack([np.zeros(COUNT - 1, int), np.arange(1, COUNT)], axis=1)


def logarithms(seed, noisier=(), noise=1.0, blur=0.0):
    """Those of standard errors (2, 40, 2) of frames of few tiles, in one stack and in a pair each.

    Those that are marked have so much noise, or are out of focus.
    """
    rng, numbers = np.random.default_rng(seed), np.arange(COUNT)
    places, marked = rng.uniform(-3, 3, (COUNT, 2)) * (numbers > 0)[:, None], np.isin(numbers, noisier)
    clean, of_frame = drifting(places, shape=(64, 72), seed=seed), marked[:, None, None]
    noise = rng.normal(size=clean.shape) * clean.std() / SNR * np.where(of_frame, noise, 1)
    stack = np.where(of_frame, gaussian_filter(clean, (0, blur, blur)), clean) + noise
    one, *pairs = (estimate_shifts(each, "first", 6, contrast="none").sigma[1:] for each in (stack, *stack[MATES]))
    return np.log([one, np.concatenate(pairs)])


def test_frames_alike_have_standard_errors_alike():
    together, alone = np.concatenate([logarithms(seed) for seed in range(3)], axis=2)
    assert together.std(axis=0).mean() < 0.75 * alone.std(axis=0).mean()
    # Not wider than those of one frame, whose few tiles are a doubt of their own, and not by much narrower.
    assert -0.12 < (together - alone).mean() < 0.02


@pytest.mark.parametrize(("noisier", "noise", "blur"), [(range(1, COUNT, 2), 3.0, 0.0), (17, 3.0, 0.0), (17, 1.0, 4.0)])
def test_frames_that_show_less_are_as_unsure_as_they_are_alone(noisier, noise, blur):
    together, alone = np.concatenate([logarithms(seed, noisier, noise, blur) for seed in range(3)], axis=2)
    marked = np.isin(np.arange(1, COUNT), noisier)
    kinds = marked, ~marked
    assert [together[frames].mean() for frames in kinds] == pytest.approx([alone[of].mean() for of in kinds], abs=0.1)
    assert (together[marked] > np.median(together[~marked], axis=0)).all()


def test_a_pair_is_as_sure_as_its_own_tiles_say():
    shapes = PeakShapes.empty(2)
    shapes.scatter[:], shapes.hessian[:], shapes.height[:] = np.eye(2) * 1e-6, -np.eye(2) * 0.1, 1.0
    shapes.quartic[:], shapes.freedom[:], shapes.scatter[1] = 0.0, 3.0, np.eye(2) * 4e-6
    np.testing.assert_allclose(shapes.standard_errors(np.full(2, 50.0)), [[0.01, 0.01], [0.02, 0.02]])
