"""Channel mixing of integers by products of bytes, the kernel's own source run on the host, against float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.kernels.pointwise_definition import (
    assert_mixed_by_bytes,
    mixed_on_host,
    random_matrix,
    random_stack,
)
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.pointwise.kernels import kernel_for, pointwise_launch
from xcorr_app.gpu.pointwise.problem import PointwiseProblem
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES

H200, T4 = KNOWN_DEVICES["h200"], KNOWN_DEVICES["t4"]
FEW = replace(H200, multiprocessors=1)
"""A device on which a warp has several strips."""
TYPES = ("uint8", "uint16", "int16")


def check_mixed(folder, stack, matrix, **options):
    options = {"kernel": "mix_bytes", "limits": FEW, **options}
    result, counted = mixed_on_host(folder, stack, matrix, 1, **options)
    assert_mixed_by_bytes(result, stack, matrix, clip=options.get("clip", False), counted=counted)
    return result


def check(folder, shape, filters, dtype="uint16", **options):
    return check_mixed(folder, random_stack(shape, dtype), random_matrix(filters, shape[1]), **options)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("target", TYPES)
@pytest.mark.parametrize("inner", [236, 232, 240])
def test_every_type(host_builds, dtype, target, inner):
    """In vectors of four, of eight and, of bytes, of sixteen pixels."""
    check(host_builds, (2, 32, inner), 32, dtype, target=target)
    check(host_builds, (2, 32, inner), 32, dtype, target=target, clip=True)


@pytest.mark.parametrize("channels", [1, 4, 8, 15, 16, 17, 20, 21, 31])
@pytest.mark.parametrize("filters", [1, 8, 9, 16, 17, 24, 31, 32])
def test_numbers_of_channels(host_builds, channels, filters):
    check(host_builds, (2, channels, 72), filters, TYPES[(channels + filters) % 3])


@pytest.mark.parametrize("dtype", TYPES)
def test_extreme_values_and_elements(host_builds, dtype):
    """Sums as large as they become, of both signs, and those that cancel to results within the range."""
    limits, rng = np.iinfo(dtype), np.random.default_rng(5)
    stack = rng.choice(np.array([limits.min, limits.max, 0, 255, 256 % (limits.max + 1)], dtype), (2, 32, 136))
    stack[:, :, :40] = limits.max
    stack[:, :, 40:60] = limits.min
    matrix = rng.choice([1.0, -1.0], (32, 32)) * rng.uniform(0.999, 1, (32, 32))
    matrix[0], matrix[1], matrix[2] = 1, -1, np.nextafter(1, 0)
    matrix[3:8] *= np.array([1e-3, 0.1, 1, 3.9, 100])[:, None]
    matrix[8:24, 16:] = -matrix[8:24, :16]
    matrix[8:24] += rng.normal(0, 0.01, (16, 32))
    check_mixed(host_builds, stack, matrix)
    check_mixed(host_builds, stack, matrix, clip=True)


def test_who_takes_it():
    problem = PointwiseProblem(16, 32, 32, 2048 * 2048, "uint16", "uint16")
    for channels, filters in ((32, 32), (17, 32), (32, 9), (32, 3), (9, 32), (15, 12)):
        assert kernel_for(replace(problem, channels=channels, filters=filters)) == "mix_bytes"
    for channels, filters in ((32, 2), (8, 32), (16, 16), (15, 11)):
        assert kernel_for(replace(problem, channels=channels, filters=filters)) != "mix_bytes"
    bytes_alone = replace(problem, image_type="uint8", result_type="uint8", channels=16, filters=16)
    assert kernel_for(bytes_alone) == "mix_bytes"
    assert kernel_for(bytes_alone, alignment=8) == "mix"  # no loads of sixteen pixels
    assert kernel_for(replace(problem, image_type="uint8"), alignment=8) == "mix_bytes"
    assert kernel_for(problem, limits=T4) == kernel_for(problem, alignment=4) == "shallow"
    assert kernel_for(replace(problem, inner=2049 * 2049)) == "shallow"
    assert kernel_for(replace(problem, outer=1, inner=256)) == "mix"
    assert kernel_for(replace(problem, inner=1, outer=10**6)) == "mix"


def test_what_it_does_not_compute_is_refused():
    problem = PointwiseProblem(2, 32, 32, 64, "uint16", "uint16")
    for other, options in (
        (replace(problem, channels=33), {}),
        (replace(problem, inner=66), {}),
        (replace(problem, inner=2**31), {}),
        (replace(problem, result_type="float32"), {}),
        (replace(problem, image_type="float32"), {}),
        (replace(problem, density=True), {}),
        (problem, {"alignment": 4}),
        (problem, {"limits": T4}),
    ):
        with pytest.raises(ArgumentError, match="whole fours of up to 32 channels of integers"):
            pointwise_launch(other, "mix_bytes", **options)
    with pytest.raises(ArgumentError, match="no tunable PIXELS"):
        pointwise_launch(problem, "mix_bytes", tuning={"PIXELS": 4})
