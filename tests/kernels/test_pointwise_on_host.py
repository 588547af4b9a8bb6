"""The kernels of channel mixing, their own source run on the host, against the definition in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from tests.kernels.im2win_definition import convolution_by_definition, integers
from tests.kernels.pointwise_definition import (
    check_on_host,
    mixed_on_host,
    off_by,
    random_matrix,
    random_stack,
    surroundings_are_whole,
)
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.im2win.problem import Im2winProblem
from xcorr_app.gpu.pointwise.shallow import shallow_argument, shallow_launch
from xcorr_app.gpu.pointwise.shallow_plan import ShallowProblem
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


LAYERS = {
    "one element": Im2winProblem(1, 1, 1, 1, 1, 1, 1),
    "the seventh layer, smaller": Im2winProblem(3, 3, 16, 24, 64, 3, 3),
    "rows of whole vectors of two": Im2winProblem(2, 3, 9, 12, 13, 3, 3),
    "rows of whole vectors of four": Im2winProblem(2, 3, 15, 18, 9, 3, 3),
    "odd rows": Im2winProblem(3, 2, 11, 13, 35, 3, 3),
    "fewer rows than a patch": Im2winProblem(5, 3, 5, 11, 6, 4, 2),
    "flat filters": Im2winProblem(2, 3, 7, 40, 5, 1, 7),
    "high filters": Im2winProblem(2, 3, 40, 7, 5, 7, 1),
    "every second result": Im2winProblem(2, 3, 17, 23, 21, 3, 3, 2),
    "a stride that leaves pixels out": Im2winProblem(2, 2, 17, 23, 4, 2, 3, 5),
    "more products than are chosen": Im2winProblem(1, 20, 9, 10, 6, 3, 3),
    "pointwise": Im2winProblem(2, 19, 5, 9, 6, 1, 1),
    "pointwise, every second pixel": Im2winProblem(2, 19, 8, 12, 6, 1, 1, 2),
    "as large as the image": Im2winProblem(40, 1, 4, 6, 3, 4, 6),
}


PATCHES = [(1, 4), (2, 2), (4, 1)]
"""Results of a thread, along a row and down a plane; small problems would take one."""


def sized(patch):
    """The tuning that makes a launch take a patch."""
    return None if patch is None else {"PIXELS_X": patch[0], "PIXELS_Y": patch[1]}


@pytest.mark.parametrize("patch", [None, *PATCHES], ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_layers_equal_the_definition(host_builds, name, patch):
    layer = LAYERS[name]
    images, filters = integers(layer)
    expected = convolution_by_definition(images, filters, layer)
    if patch and layer.depth > 48 and layer.channels > 1:
        with pytest.raises(ArgumentError, match="take fewer pixels"):
            shallow_on_host(host_builds, images, filters, layer, tuning=sized(patch))
        return
    for offset in (0, 1, 2):
        output = shallow_on_host(host_builds, images, filters, layer, offset=offset, tuning=sized(patch))
        np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
@pytest.mark.parametrize("target", [None, "float32"])
@pytest.mark.parametrize(("inner", "patch"), [(36, (4, 1)), (38, (2, 2)), (35, (1, 4))])
def test_types(host_builds, dtype, target, inner, patch):
    for options in ({}, {"clip": True}, {"white": 200.0}):
        check_on_host(
            host_builds, (2, 20, inner), 1, 11, dtype, kernel="shallow", target=target, tuning=sized(patch), **options
        )


def shallow_on_host(folder, images, filters, layer, *, offset=0, tuning=None, device=None):
    """A layer's output, poisoned beforehand; arrays `offset` elements off 16 bytes."""
    problem = ShallowProblem.of_bank(layer)
    source, planes = off_by(images, offset), off_by(np.full(layer.out_shape, np.nan, np.float32), offset)
    addresses = source.ctypes.data | planes.ctypes.data | 16
    launch = shallow_launch(problem, alignment=addresses & -addresses, device=device, tuning=tuning)
    bank = guarded(filters)
    arrays = (source, planes, planes, bank, shallow_argument(problem, launch))
    run_kernel(folder, launch, arrays, launch.extra)
    assert surroundings_are_whole(planes)
    assert guards_are_whole(bank)
    return planes
