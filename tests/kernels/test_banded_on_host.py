"""Separable taps on tensor cores, the kernel's own source run on the host, against scipy.ndimage in float64."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.banded_definition import banded_on_host
from tests.kernels.filter_definition import random_images
from tests.kernels.separable_definition import assert_separable, gaussian, random_terms, separable_by_definition
from xcorr_app.gpu.stencil.problem import BOUNDARIES


def check(folder, images, terms, boundary="reflect", outside=0.0, origin=(0, 0), **options):
    result, marks = banded_on_host(folder, images, terms, boundary, outside, origin, **options)
    assert not marks.any()
    assert_separable(result, images, terms, boundary, outside, origin)
    return result


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_every_boundary(host_builds, boundary):
    terms = random_terms((7, 10))
    for shape in ((2, 41, 132), (1, 19, 133)):
        check(host_builds, random_images(shape, "float32"), terms, boundary, 0.75)


@pytest.mark.parametrize("hot", [1e30, 3e38])
def test_a_hot_pixel_outshines_its_neighbourhood_alone(host_builds, hot):
    """Rows that no tile with the hot pixel meets are as exact as without it, and blocks elsewhere anyway."""
    images, terms = random_images((1, 220, 300), "float32"), gaussian(2)
    plain = images * np.float32(1e-30)
    images = plain.copy()
    images[0, 60, 40] = hot
    result, _ = banded_on_host(host_builds, images, terms, tuning={"BLOCK_ROWS": 224})
    expected = separable_by_definition(images, terms)
    assert np.abs(result - expected).max() < 2e-6 * hot
    alone, reach = separable_by_definition(plain, terms), 16 * 2 + 16
    for part in (np.s_[:, 60 + 8 + reach :], np.s_[:, : 60 - 8 - reach], np.s_[:, :, 128 + 8 :]):
        assert np.abs(result[part] - alone[part]).max() < 2e-6 * 1e-30


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_an_image_with_a_bad_value_is_marked(host_builds, bad):
    images = random_images((3, 30, 150), "float32")
    images[1, 12, 140] = bad
    result, marks = banded_on_host(host_builds, images, gaussian(1))
    np.testing.assert_array_equal(marks, [0, 1, 0])
    for image in (0, 2):
        assert_separable(result[image : image + 1], images[image : image + 1], gaussian(1))
