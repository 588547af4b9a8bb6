"""The kernels of channel mixing, their own source run on the host, against the definition in float64."""

from dataclasses import replace

import numpy as np
import pytest

from tests.kernels.pointwise_definition import (
    check_on_host,
    mixed_on_host,
    random_matrix,
    random_stack,
)
from xcorr_app.gpu.runtime.limits import H200

ONE = replace(H200, multiprocessors=1)
"""A device on which blocks get large tiles, and several of them, from few pixels."""


SIZES = [
    (1, 1, 1),
    (1, 5, 3),
    (3, 1, 200),
    (7, 9, 49),
    (16, 47, 130),
    (17, 48, 64),
    (33, 50, 36),
    (64, 24, 98),
    (20, 23, 300),
    (130, 100, 25),
    (9, 513, 20),
]
"""Channels, filters, pixels: both layouts, block tiles of half the filters, tails of everything."""


@pytest.mark.parametrize("limits", [H200, ONE], ids=["many tiles", "large tiles"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_sizes(host_builds, sizes, limits):
    channels, filters, pixels = sizes
    check_on_host(host_builds, (2, channels, pixels), 1, filters, kernel="blocking", limits=limits)


@pytest.mark.parametrize("sizes", [(1, 3, 70), (5, 9, 33), (70, 60, 41), (19, 30, 130)], ids=str)
def test_interleaved_channels(host_builds, sizes):
    channels, filters, pixels = sizes
    check_on_host(host_builds, (pixels, channels), 1, filters, kernel="blocking", limits=ONE)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
@pytest.mark.parametrize("target", [None, "float32"])
@pytest.mark.parametrize("shape", [(35, 6, 11), (66, 35)])
def test_types_of_dynamic_blocking(host_builds, dtype, target, shape):
    axis = len(shape) - 1 if len(shape) == 2 else 0
    for options in ({}, {"clip": True}, {"white": 200.0}):
        check_on_host(host_builds, shape, axis, 34, dtype, kernel="blocking", limits=ONE, target=target, **options)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize(
    ("shape", "how"),
    [
        ((2, 40, 36), {"kernel": "blocking", "limits": ONE}),
        ((72, 40), {"kernel": "blocking", "limits": ONE}),
    ],
)
def test_a_bad_value_stays_in_its_pixel(host_builds, bad, shape, how):
    stack, matrix = random_stack(shape, "float32"), np.abs(random_matrix(50, 40))
    np.moveaxis(stack, 1, 0)[3].flat[17] = bad
    result, _ = mixed_on_host(host_builds, stack, matrix, 1, **how)
    wrong = ~np.isfinite(np.moveaxis(result, 1, 0).reshape(50, -1))
    assert wrong[:, 17].all()
    assert wrong.sum() == 50


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
def test_a_bad_value_stays_in_its_pixel_of_a_stream(host_builds, bad, shape, axis, clip):
    stack, matrix = random_stack(shape, "float32"), np.abs(random_matrix(5, 8))
    np.moveaxis(stack, axis, 0)[3, 15, 16] = bad
    result, _ = mixed_on_host(host_builds, stack, matrix, axis, clip=clip)
    wrong = ~np.isfinite(np.moveaxis(result, axis, 0))
    assert wrong[:, 15, 16].all()
    assert wrong.sum() == 5
