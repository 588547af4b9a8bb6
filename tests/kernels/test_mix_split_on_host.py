"""The streaming kernel of channel mixing on tensor cores, its own source run on the host, against float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.kernels.pointwise_definition import (
    assert_mixed,
    mixed_on_host,
    random_matrix,
    random_stack,
)
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES

H200 = KNOWN_DEVICES["h200"]
FEW = replace(H200, multiprocessors=1)
"""A device on which a warp has several strips."""


def check(folder, shape, filters, dtype="float32", *, white=None, clip=False, target=None, **options):
    stack, matrix = random_stack(shape, dtype), random_matrix(filters, shape[1])
    options = {"kernel": "mix_split", "limits": FEW, "white": white, "clip": clip, "target": target, **options}
    result, counted = mixed_on_host(folder, stack, matrix, 1, **options)
    assert_mixed(result, stack, matrix, 1, white=white, clip=clip, counted=counted)
    return result


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
@pytest.mark.parametrize("target", [None, "float32", "int16"])
def test_every_type(host_builds, dtype, target):
    check(host_builds, (2, 32, 236), 32, dtype, target=target)


@pytest.mark.parametrize("channels", [1, 4, 8, 17, 31])
@pytest.mark.parametrize("filters", [1, 9, 17, 31, 32])
def test_numbers_of_channels(host_builds, channels, filters):
    check(host_builds, (2, channels, 68), filters, "uint16" if (channels + filters) % 2 else "float32")


@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_densities_and_clipped_results(host_builds, dtype):
    for options in ({"clip": True}, {"white": 80.0, "target": "float32"}, {"white": 80.0, "clip": True}):
        check(host_builds, (2, 19, 76), 18, dtype, **options)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_value_stays_in_its_pixel(host_builds, bad):
    stack, matrix = random_stack((2, 30, 36), "float32"), random_matrix(25, 30)
    stack[1, 29, 17] = bad
    result, _ = mixed_on_host(host_builds, stack, matrix, 1, kernel="mix_split", clip=True)
    wrong = ~np.isfinite(result)
    assert wrong[1, :, 17].all()
    assert wrong.sum() == 25
