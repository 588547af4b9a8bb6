"""What frames add to means in one pass on a device: the bits that array operations of the host give."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from tests.registration.measuring.test_means_of_others import SHAPE, by_steps, images, placed, sums
from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.registration.measuring.placement import Level, coverage, entered, entering, means_without_each

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("spread", [0.0, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_pass_gives_the_bits_of_many(dtype, spread):
    cupy = importlib.import_module("cupy")
    there, placed_at = images(dtype), placed(spread=spread)
    level = Level(placed_at.offset, placed_at.gain)
    # Not moved, though placed: a device interpolates by other roundings.
    still = placed(spread=0.0)
    rows, columns = coverage(placed_at, SHAPE)
    values = entering(there, still)
    values = values * (rows > 0)[:, :, None].astype(dtype) * columns[:, None].astype(dtype)
    total, weights = values.sum(axis=0, dtype=np.float64), sums(there, placed_at)[1]
    expected, where = by_steps(values, placed_at, total, weights)
    assert where.all() == (spread == 0)
    on_device = [cupy.asarray(each) for each in (there, rows, columns, total, weights)]
    found = entered(on_device[0], level, *on_device[1:3])
    np.testing.assert_array_equal(to_host(found), values)
    means, known = means_without_each(on_device[0], level, *on_device[1:3], tuple(on_device[3:]), 1e-9)
    np.testing.assert_array_equal(to_host(known), where)
    np.testing.assert_array_equal(to_host(means)[where], expected[where])
    assert not to_host(means)[~where].any()
