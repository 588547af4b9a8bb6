"""Pictures of frames whose values are near the limit of their type."""

import numpy as np

from xcorr_app.batch.align.projections import Projections


def test_values_that_overflow_are_added_without_a_word():
    frames = np.random.default_rng(0).choice([-1.0, 1.0], (4, 12, 14)) * 1.7e308
    frames[:, 3, 4], frames[3, 5, 6] = np.inf, -np.inf
    sums = Projections((12, 14), np.zeros((4, 2)), [1])
    with np.errstate(all="raise"):
        sums.add([0, 1], frames[:2], frames[:2])
        sums.add([2, 3], frames[2:], frames[2:])
