"""Separable taps on tensor cores, the kernel's own source run on the host, against scipy.ndimage in float64."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.banded_definition import banded_on_host
from tests.kernels.filter_definition import random_images
from tests.kernels.host_device import builds
from tests.kernels.separable_definition import assert_separable, gaussian, random_terms, separable_by_definition
from xcorr_app.gpu.stencil.problem import BOUNDARIES

TILES = [(4, 32), (2, 32), (8, 16), (4, 16), (8, 32)]


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


@pytest.mark.parametrize(("warps", "columns"), TILES)
def test_every_tile(host_builds, warps, columns):
    tuning = {"WARPS": warps, "WARP_COLUMNS": columns}
    images = random_images((1, 50, 300), "float32")
    for size in (9, 34):
        check(host_builds, images, gaussian(1) if size == 9 else random_terms((size, size)), tuning=tuning)


@pytest.mark.parametrize("columns", [16, 32])
@pytest.mark.parametrize("size", [2, 3, 16, 17, 18, 33, 49, 50, 64, 65])
def test_lengths_of_taps(host_builds, size, columns):
    images, tuning = random_images((1, 40, 150), "float32"), {"WARP_COLUMNS": columns}
    check(host_builds, images, random_terms((size, 67 - size)), "mirror", tuning=tuning)
    check(host_builds, images, [(random_terms((size, 1))[0][0],) * 2], "wrap", tuning=tuning)


@pytest.mark.parametrize("boundary", BOUNDARIES[:-1])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (1, 40), (33, 1), (4, 8)])
def test_images_smaller_than_the_filter(host_builds, shape, boundary):
    check(host_builds, random_images((2, *shape), "float32"), random_terms((35, 50)), boundary, -0.5)


@pytest.mark.parametrize(("shape", "origin"), [((4, 6), (-2, 2)), ((9, 8), (4, 3)), ((33, 33), (3, -7))])
def test_origin(host_builds, shape, origin):
    images = random_images((1, 39, 260), "float32")
    check(host_builds, images, random_terms(shape), origin=origin)
    check(host_builds, images, random_terms(shape), "constant", 0.3, origin)
    if shape[0] == shape[1]:
        check(host_builds, images, [(random_terms(shape)[0][0],) * 2], origin=origin)


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


def test_a_constant_outside_that_is_not_finite_marks_every_image(host_builds):
    _, marks = banded_on_host(host_builds, random_images((2, 30, 40), "float32"), gaussian(1), "constant", np.inf)
    assert marks.all()


def test_other_taps_are_the_same_build(host_builds):
    images = random_images((1, 20, 40), "float32")
    before = check(host_builds, images, random_terms((3, 4), seed=5))
    before_others = builds()
    assert not np.array_equal(before, check(host_builds, images, random_terms((3, 4), seed=6)))
    assert builds() == before_others
