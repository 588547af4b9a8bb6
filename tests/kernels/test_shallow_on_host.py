"""The kernel for few values a result, its own source run on the host, against the definition in float64."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.im2win_definition import convolution_by_definition, integers
from tests.kernels.pointwise_definition import check_on_host
from tests.kernels.shallow_host import shallow_on_host
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.im2win.problem import Im2winProblem

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
