"""Peaks that chance can make are known as such, and no others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts
from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.registration.standard_error.significance import significance


def rated(xp, planes, *, scores=False):
    flat = planes.reshape(len(planes), -1).argmax(axis=1)
    row, column = np.unravel_index(flat, planes.shape[1:])
    value = planes.reshape(len(planes), -1).max(axis=1)
    return significance(*(xp.asarray(a) for a in (planes, row, column, value)), scores=scores)


@pytest.mark.parametrize("smoothness", [0.0, 1.0, 3.0])
def test_the_highest_value_of_noise_is_as_probable_as_said(xp, rng, smoothness):
    planes = np.stack([gaussian_filter(rng.normal(size=(113, 129)), smoothness)[16:-16, 16:-16] for _ in range(200)])
    chance = rated(xp, planes).false_alarm
    assert np.mean(chance < 0.05) < 0.15
    assert np.mean(chance < 0.001) < 0.01


def test_a_peak_above_noise_is_none_of_it(xp, rng):
    planes = np.stack([gaussian_filter(rng.normal(size=(81, 97)), 2) for _ in range(20)])
    planes /= planes.std()
    planes[:, 30, 40] += 15
    found = rated(xp, planes)
    assert (found.z > 10).all()
    assert (found.false_alarm < 1e-4).all()


def test_invalid_shifts_and_planes_without_a_spread(xp, rng):
    planes = rng.normal(size=(3, 41, 41))
    planes[0, :20] = np.nan
    planes[1] = 0.25
    planes[2] = np.nan
    value = xp.asarray(np.array([9.0, 0.25, np.nan]))
    place = xp.asarray(np.array([30, 30, 30]))
    found = significance(xp.asarray(planes), place, place, value, scores=False)
    assert found.false_alarm[0] < 0.01
    assert np.isnan(found.z[1:]).all()
    assert np.isnan(found.false_alarm[1:]).all()


def test_unrelated_textures_are_uncertain_and_related_ones_are_not(xp):
    related = drifting([(0, 0), (5, -4)], shape=(128, 128))
    stack = np.concatenate([related, drifting([(0, 0)], shape=(128, 128), seed=7)])
    result = estimate_shifts(xp.asarray(stack + noise(stack, 1.0)), "first", 30, contrast="none")
    assert not result.flags[1]
    assert {"uncertain", "ambiguous", "edge"} & set(result.flags[2])
    assert to_host(result.significance)[1] > 1.5 * to_host(result.significance)[2]
