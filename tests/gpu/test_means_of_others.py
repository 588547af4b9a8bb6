"""Means of the others in one pass on a device: the bits that array operations give."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from tests.registration.test_means_of_others import by_steps, images, placed, sums
from xcorr_app.registration.means_of_others import means_of_others
from xcorr_app.registration.placement import moved

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("dtype", [np.uint16, np.float32, np.float64])
def test_one_pass_gives_the_bits_of_many(dtype):
    cupy = importlib.import_module("cupy")
    frames, placement = images(dtype), placed()
    total, weights = (cupy.asarray(part) for part in sums(frames, placement))
    frames = cupy.asarray(frames)
    expected, where = by_steps(frames, placement, total, weights)
    found, known = means_of_others(moved(frames, placement.shifts), placement, total, weights, 1e-9)
    assert bool((known == where).all())
    assert 0 < float(known.mean()) < 1
    assert bool((found[known] == expected[known]).all())
    assert not bool(found[~known].any())
