"""The streaming kernel of channel mixing, its own source run on the host, against the definition in float64."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.pointwise_definition import (
    check_on_host,
    mixed_on_host,
    random_matrix,
    random_stack,
)

TYPES = ("uint8", "uint16", "int16", "float32")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("target", ["same", "float32"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((2, 3, 9, 16), -3), ((2, 3, 7, 9), -3), ((13, 11, 3), -1), ((5, 4, 6), 1)]
)
def test_every_type_and_place_of_the_channels(host_builds, dtype, target, shape, axis):
    how = {"counts_exactly": True, "target": None if target == "same" else target}
    check_on_host(host_builds, shape, axis, 4, dtype, **how)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
@pytest.mark.parametrize("channels", [1, 12])
def test_halves_to_even_ends_and_their_number(host_builds, dtype, channels):
    """In double for few channels and in float for more: sums of halves are exact in both."""
    limits = np.iinfo(dtype)
    values = np.array([limits.min, limits.max, 1, 2, 3, 5, 254], dtype)
    for gain in (0.5, 1.5, -1.0, 3e9):
        for shape, axis in (((channels, 7), 0), ((7, channels), 1)):
            stack = np.zeros(shape, dtype)
            np.moveaxis(stack, axis, 0)[0] = values
            matrix = np.zeros((2, channels))
            matrix[1, 0] = gain
            result, counted = mixed_on_host(host_builds, stack, matrix, axis)
            exact = np.rint(values * gain)
            expected = np.clip(exact, limits.min, limits.max)
            np.testing.assert_array_equal(np.moveaxis(result, axis, 0), [0 * expected, expected])
            assert counted == (expected != exact).sum()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize(("shape", "axis"), [((8, 31, 32), 0), ((31, 32, 8), 2)])
@pytest.mark.parametrize("clip", [False, True])
def test_a_bad_value_stays_in_its_pixel(host_builds, bad, shape, axis, clip):
    stack, matrix = random_stack(shape, "float32"), np.abs(random_matrix(5, 8))
    np.moveaxis(stack, axis, 0)[3, 15, 16] = bad
    result, _ = mixed_on_host(host_builds, stack, matrix, axis, clip=clip)
    wrong = ~np.isfinite(np.moveaxis(result, axis, 0))
    assert wrong[:, 15, 16].all()
    assert wrong.sum() == 5
