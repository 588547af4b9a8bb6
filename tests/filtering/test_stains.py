"""Colour deconvolution against scikit-image and against mixtures that are known."""

from __future__ import annotations

import numpy as np
import pytest
from skimage import color

from xcorr_app import stain_matrix, unmix
from xcorr_app.errors import ArgumentError
from xcorr_app.filtering.stains import STAINS, optical_density
from xcorr_app.gpu.runtime.arrays import to_host

SKIMAGE_SCALE = -np.log10(1e-6)
"""scikit-image divides natural logarithms by that of its smallest value."""


def random_colours(rng, dtype):
    if np.dtype(dtype).kind == "f":
        return rng.uniform(0, 1, (23, 29, 3)).astype(dtype)
    image = rng.integers(0, np.iinfo(dtype).max, (23, 29, 3), dtype, endpoint=True)
    image[0, 0] = 0
    return image


@pytest.mark.parametrize("name", ["hed_from_rgb", "hdx_from_rgb", "bex_from_rgb"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
def test_equals_scikit_image_for_the_same_matrix(xp, rng, name, dtype):
    image = random_colours(rng, dtype)
    matrix = getattr(color, name)
    expected = color.separate_stains(
        image.astype(np.float64) / (1 if image.dtype.kind == "f" else np.iinfo(dtype).max), matrix
    )
    found = to_host(unmix(xp.asarray(image), matrix.T, channel_axis=-1, from_log=True, clip=True))
    assert found.dtype == (np.float64 if dtype == "float64" else np.float32)
    np.testing.assert_allclose(found / SKIMAGE_SCALE, expected, rtol=0, atol=1e-14 if dtype == "float64" else 3e-6)


@pytest.mark.parametrize(("dtype", "white"), [("uint8", 241.3), ("uint16", 61_234.7)])
def test_densities_of_integers_are_those_of_the_definition_in_float64(rng, dtype, white):
    image = random_colours(rng, dtype)
    expected = -np.log10(np.maximum(image.astype(np.float64) / white, 1e-6))
    found = optical_density(image, white, np.dtype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", STAINS)
def test_known_amounts_are_found_again(rng, name):
    matrix, names = stain_matrix(name)
    amounts = rng.uniform(0, 1, (3, 17, 19))
    if "residual" in names:
        amounts[names.index("residual")] = 0
    colours = np.linalg.inv(matrix)
    np.testing.assert_allclose(np.linalg.norm(colours, axis=0), 1, rtol=1e-12)
    light = 10 ** -np.einsum("ck,kyx->cyx", colours, amounts)
    np.testing.assert_allclose(unmix(light, matrix, from_log=True), amounts, atol=1e-12)
    camera = np.rint(light * 4000).astype(np.uint16)
    np.testing.assert_allclose(unmix(camera, matrix, from_log=True, white=4000), amounts, atol=0.05)


def test_two_stains_are_separated_by_least_squares(rng):
    matrix, names = stain_matrix("hdab")
    assert names == ("hematoxylin", "DAB", "residual")
    vectors = np.linalg.inv(matrix)[:, :2]
    densities = rng.uniform(0, 2, (3, 50))
    expected = np.linalg.lstsq(vectors, densities, rcond=None)[0]
    np.testing.assert_allclose(matrix[:2] @ densities, expected, atol=1e-12)


def test_densities_of_integers_stay_fractions_unless_whole_numbers_are_asked_for(rng):
    image = random_colours(rng, "uint8")
    matrix = 40 * stain_matrix("he").matrix
    fractions = unmix(image, matrix, channel_axis=-1, from_log=True)
    whole = unmix(image, matrix, channel_axis=-1, from_log=True, dtype="same")
    assert (fractions.dtype, whole.dtype) == (np.float32, np.uint8)
    assert np.abs(np.clip(fractions, 0, 255) - whole).max() <= 0.5001


def test_unknown_stains():
    with pytest.raises(ArgumentError, match="use one of he, hdab, hed"):
        stain_matrix("pas")
