"""What frames add to means on a device in one pass: what its kernels are given, and what becomes of it."""

import numpy as np
import pytest

from xcorr_app.registration.measuring import placement, references
from xcorr_app.registration.measuring.placement import Placement, coverage, entering
from xcorr_app.registration.measuring.references import MeanOfOthers, quotient
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import ArrayFrames
from xcorr_app.registration.stack.preparation import PreparedChunk

SHAPE = (23, 31)


def placed(count=7, spread=1.0):
    rng = np.random.default_rng(1)
    numbers = rng.uniform(40, 60, count), rng.normal(1000, 5, count), rng.uniform(0.2, 1, count)
    return Placement(np.round(rng.normal(0, 4, (count, 2)), 2) * spread, *numbers)


def images(dtype, count=7):
    return (np.random.default_rng(2).normal(size=(count, *SHAPE)) * 50 + 1000).astype(dtype)


def sums(frames, placed_at):
    rows, columns = coverage(placed_at, SHAPE)
    return entering(frames, placed_at).sum(axis=0, dtype=np.float64), rows.T @ columns


def by_steps(values, placed_at, total, weights):
    rows, columns = coverage(placed_at, SHAPE)
    return quotient(total - values, weights - rows[:, :, None] * columns[:, None])


def entered(frame, offset, gain, row, column):
    kind = frame.dtype.type
    return (frame * kind(0.5) - offset) / gain * row.astype(kind) * column.astype(kind)


def mean(frame, offset, gain, row, column, total, weight, least):
    rest = weight - row * column
    known = rest > least
    value = entered(frame, offset, gain, row, column)
    return np.where(known, (total - value) / np.where(known, rest, 1.0), 0.0), known


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_a_device_is_given_all_that_it_needs(monkeypatch, spread):
    """The kernels stood in for by what they compute."""
    frames, placed_at = images(np.uint16), placed(spread=spread)
    values = entering(frames, placed_at)
    total, weights = sums(frames, placed_at)
    expected, known = by_steps(values, placed_at, total, weights)
    assert known.all() == (spread == 0)
    monkeypatch.setattr(placement, "_entered", lambda: entered)
    monkeypatch.setattr(placement, "_mean", lambda: mean)
    monkeypatch.setattr(placement, "is_device_array", lambda _: True)
    monkeypatch.setattr(references, "is_device_array", lambda _: True)
    np.testing.assert_array_equal(entering(frames, placed_at), values)
    of_others = MeanOfOthers(total, weights, placed_at, ArrayFrames(frames), Settings())
    none = np.zeros(4, dtype=bool)
    found = of_others.images(2, PreparedChunk(frames[2:6], none, none.astype(np.int64)))
    np.testing.assert_array_equal(found, expected[2:6])
