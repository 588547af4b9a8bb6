"""Dynamic blocking, its own source run on the host, against the definition in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.kernels.pointwise_definition import check_on_host, mixed_on_host, random_matrix, random_stack
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES

H200 = KNOWN_DEVICES["h200"]
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
        ((2, 40, 36), {"kernel": "shallow", "tuning": {"PIXELS_X": 4, "PIXELS_Y": 1}}),
        ((2, 40, 35), {"kernel": "shallow", "tuning": {"PIXELS_X": 1, "PIXELS_Y": 4}}),
    ],
)
def test_a_bad_value_stays_in_its_pixel(host_builds, bad, shape, how):
    stack, matrix = random_stack(shape, "float32"), np.abs(random_matrix(50, 40))
    np.moveaxis(stack, 1, 0)[3].flat[17] = bad
    result, _ = mixed_on_host(host_builds, stack, matrix, 1, **how)
    wrong = ~np.isfinite(np.moveaxis(result, 1, 0).reshape(50, -1))
    assert wrong[:, 17].all()
    assert wrong.sum() == 50
