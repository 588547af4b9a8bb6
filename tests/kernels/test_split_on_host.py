"""Products on tensor cores, three in TF32 for one in float32: the kernels' source on the host, against float64."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.pointwise_definition import (
    mixed_on_host,
    random_matrix,
    random_stack,
)

SPLIT = {
    "SPLIT": 1,
    "LANES_M": 8,
    "WARPS_M": 1,
    "WARPS_N": 1,
    "WARPS_K": 1,
    "MICRO_M": 4,
    "MICRO_N": 8,
    "TILE_K": 16,
    "BUFFERS": 3,
}
"""A tile of one warp."""


def test_a_product_is_as_exact_as_in_float32(host_builds):
    """One channel: a product of two rounded parts each, where TF32 alone would be off by 2^-11."""
    stack, matrix = random_stack((1, 1, 64), "float32"), random_matrix(32, 1).astype(np.float32)
    result, _ = mixed_on_host(host_builds, stack, matrix, 1, kernel="tiled", tuning=SPLIT)
    exact = matrix.astype(np.float64)[:, 0, None] * stack[0].astype(np.float64)
    assert (np.abs(result[0] - exact) <= 2.0**-21 * np.abs(exact)).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_bad_value_stays_in_its_pixel(host_builds, bad):
    stack, matrix = random_stack((2, 40, 36), "float32"), random_matrix(50, 40)
    stack[1, 3, 17] = bad
    result, _ = mixed_on_host(host_builds, stack, matrix, 1, kernel="tiled", tuning=SPLIT)
    wrong = ~np.isfinite(result)
    assert wrong[1, :, 17].all()
    assert wrong.sum() == 50
