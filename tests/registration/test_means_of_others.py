"""Means of the others in one pass on a device: what its kernel is given, and what becomes of it."""

from __future__ import annotations

import numpy as np
import pytest

from xcorr_app.gpu.runtime.arrays import array_namespace
from xcorr_app.registration import references
from xcorr_app.registration.frames import ArrayFrames
from xcorr_app.registration.placement import Placement, coverage, entering
from xcorr_app.registration.preparation import Prepared
from xcorr_app.registration.references import MeanOfOthers, quotient
from xcorr_app.registration.settings import Settings

SHAPE = (23, 31)


def placed(count=7):
    rng = np.random.default_rng(1)
    numbers = rng.uniform(40, 60, count), rng.normal(1000, 5, count), rng.uniform(0.2, 1, count)
    return Placement(np.round(rng.normal(0, 4, (count, 2)), 2), *numbers)


def images(dtype, count=7):
    return (np.random.default_rng(2).normal(size=(count, *SHAPE)) * 50 + 1000).astype(dtype)


def sums(frames, placement):
    rows, columns = coverage(placement, SHAPE)
    return entering(frames, placement).sum(axis=0, dtype=np.float64), rows.T @ columns


def by_steps(frames, placement, total, weights):
    rows, columns = coverage(placement, SHAPE, array_namespace(frames))
    return quotient(total - entering(frames, placement), weights - rows[:, :, None] * columns[:, None])


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_a_device_is_given_all_that_it_needs(monkeypatch, spread):
    """The kernel stood in for by what it computes."""

    def kernel(frame, offset, gain, row, column, total, weight, least):
        kind = frame.dtype.type
        value = (frame * kind(0.5) - offset) / gain * row.astype(kind) * column.astype(kind)
        rest = weight - row * column
        known = rest > least
        return np.where(known, (total - value) / np.where(known, rest, 1.0), 0.0), known

    frames, placement = images(np.uint16), placed()
    placement = Placement(placement.shifts * spread, placement.gain, placement.offset, placement.weight)
    total, weights = sums(frames, placement)
    expected, known = by_steps(frames, placement, total, weights)
    assert known.all() == (spread == 0)
    monkeypatch.setattr("xcorr_app.registration.means_of_others._kernel", lambda: kernel)
    monkeypatch.setattr(references, "is_device_array", lambda _: True)
    mean = MeanOfOthers(total, weights, placement, ArrayFrames(frames), Settings())
    none = np.zeros(4, dtype=bool)
    found = mean.images(2, Prepared(frames[2:6], none, none.astype(np.int64)))
    np.testing.assert_array_equal(found, expected[2:6])
