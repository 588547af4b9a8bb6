"""The fused pass's own source, run on the host, against scipy.ndimage in float64; outputs poisoned and guarded."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.filter_definition import INTEGERS, TYPES, random_images
from tests.kernels.separable_definition import (
    assert_separable,
    random_terms,
    separable_on_host,
)
from xcorr_app.gpu.stencil.problem import BOUNDARIES


def check(folder, images, terms, boundary="reflect", outside=0.0, origin=(0, 0), **options):
    options = {"outside": outside, "origin": origin, **options}
    result, _ = separable_on_host(folder, images, terms, boundary, **options)
    assert_separable(result, images, terms, boundary, outside, origin)


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("columns", [4, 2, 1])
def test_every_boundary(host_builds, columns, boundary):
    tuning = {"LANE_COLUMNS": columns, "ROW_SUMS": 4 if columns == 1 else 8}
    for shape in ((2, 21, 132), (1, 19, 133)):
        images = random_images(shape, "float32")
        check(host_builds, images, random_terms((7, 10)), boundary, outside=0.75, tuning=tuning)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("count", [1, 2])
def test_every_type(host_builds, count, dtype, same):
    """A constant that no integer can hold is used as it is."""
    images, terms = random_images((2, 10, 136), dtype), random_terms((4, 7), count)
    check(host_builds, images, terms, "constant", 17.3, result_type=dtype if same else "float32")


@pytest.mark.parametrize("count", [1, 2])
def test_nan_and_infinity_stay_within_their_footprint(host_builds, count):
    images, ones = random_images((1, 30, 150), "float32"), (np.ones(5), np.ones(7))
    images[0, 12, 70], images[0, 25, 127] = np.nan, np.inf
    result, _ = separable_on_host(host_builds, images, [ones] * count)
    reached = np.zeros((30, 150), bool)
    for y, x in ((12, 70), (25, 127)):
        reached[y - 2 : y + 3, x - 3 : x + 4] = True
    np.testing.assert_array_equal(~np.isfinite(result[0]), reached)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_rounded_half_to_even_clipped_and_counted(host_builds, dtype):
    limits = np.iinfo(dtype)
    images = np.array([limits.min, limits.max, 1, 2, 3, 5, 254] * 19, dtype).reshape(1, 1, 133)
    for gain in (0.5, 1.5, -1.0, 16.5, 3e9):
        rounded = np.rint(images * gain)
        result, clipped = separable_on_host(host_builds, images, [(np.array([0.0, gain, 0.0]), np.array([1.0]))])
        np.testing.assert_array_equal(result, np.clip(rounded, limits.min, limits.max))
        assert clipped == np.count_nonzero((rounded < limits.min) | (rounded > limits.max))
