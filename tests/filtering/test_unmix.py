"""Channel mixing and stains against the definition, einsum in float64, and scikit-image."""

import numpy as np
import pytest
from skimage import color

from tests.kernels.pointwise_definition import mixed_by_definition
from tests.pixels import pixels as random_stack
from xcorr_app import stain_matrix, unmix
from xcorr_app.filtering.array_choice import has_kernel
from xcorr_app.filtering.stains import STAINS, optical_density
from xcorr_app.filtering.unmix import unmix_counted
from xcorr_app.gpu.pointwise.problem import MAX_ELEMENTS
from xcorr_app.gpu.runtime.arrays import to_host

TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "float64")


def agree(found, stack, matrix, axis):
    """Integers exactly; floating point within 2e-6 of the sum of absolute products."""
    expected = mixed_by_definition(stack, matrix, axis)
    if found.dtype.kind != "f":
        limits = np.iinfo(found.dtype)
        np.testing.assert_array_equal(found, np.clip(np.rint(expected), limits.min, limits.max))
        return
    bound = mixed_by_definition(np.abs(stack.astype(np.float64)), np.abs(matrix), axis)
    assert (np.abs(found - expected) <= (2e-6 if found.dtype == np.float32 else 1e-14) * bound).all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("shape", "axis"), [((2, 5, 9, 7), -3), ((9, 7, 5), -1), ((5, 9, 7), 0), ((9, 5, 7), 1)])
@pytest.mark.parametrize("wanted", ["same", "float32"])
def test_every_type_and_place_of_the_channels(xp, rng, dtype, shape, axis, wanted):
    stack = random_stack(rng, shape, dtype)
    matrix = rng.normal(0, 0.5, (3, 5))
    found = unmix(xp.asarray(stack), matrix, channel_axis=axis, dtype=wanted)
    assert isinstance(found, xp.ndarray)
    found = to_host(found)
    assert found.dtype == np.dtype(dtype if wanted == "same" else "float32")
    assert found.shape[axis] == 3
    agree(found, stack, matrix, axis)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize(
    ("channels", "mixed_channels"), [(1, 1), (1, 7), (7, 1), (33, 65), (128, 3), (4096, 2), (2, 4096)]
)
def test_any_number_of_channels(xp, rng, dtype, channels, mixed_channels):
    matrix = rng.normal(0, 1 / np.sqrt(channels), (mixed_channels, channels))
    for shape, axis in (((channels, 5, 6), -3), ((5, 6, channels), -1)):
        stack = random_stack(rng, shape, dtype)
        agree(to_host(unmix(xp.asarray(stack), matrix, channel_axis=axis)), stack, matrix, axis)


def test_halves_are_rounded_to_even_and_ends_are_clipped(xp):
    stack = xp.asarray(np.array([[[1, 3, 5, 255, 0]]], np.uint8))
    assert to_host(unmix(stack, [[0.5]])).tolist() == [[[0, 2, 2, 128, 0]]]
    assert to_host(unmix(stack, [[2], [-1]])).tolist() == [[[2, 6, 10, 255, 0]], [[0] * 5]]
    assert unmix_counted(stack, [[2], [-1]])[1] == 5
    assert unmix_counted(stack, [[2], [-1]], clip=True)[1] == 1
    assert unmix_counted(stack, [[2], [-1]], dtype="float32")[1] == 0


def test_negative_results_are_clipped_on_demand_only(xp):
    stack = xp.asarray(np.array([[[2.0]], [[np.nan]]], np.float32))
    assert to_host(unmix(stack[:1], [[-1]])).item() == -2
    assert to_host(unmix(stack[:1], [[-1]], clip=True)).item() == 0
    assert np.isnan(to_host(unmix(stack, np.eye(2), clip=True))).all()
    signed = xp.asarray(np.full((1, 2, 2), -7, np.int16))
    assert to_host(unmix(signed, [[1]])).max() == -7
    assert to_host(unmix(signed, [[1]], clip=True)).max() == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize(("shape", "axis"), [((8, 31, 33), 0), ((31, 33, 8), -1)])
def test_a_bad_value_stays_in_its_pixel(xp, rng, bad, shape, axis):
    stack = random_stack(rng, shape, "float32")
    pixels = np.moveaxis(stack, axis, 0)
    pixels[3, 15, 16] = bad
    matrix = rng.normal(size=(5, 8))
    found = np.moveaxis(to_host(unmix(xp.asarray(stack), matrix, channel_axis=axis)), axis, 0)
    wrong = ~np.isfinite(found)
    assert wrong[:, 15, 16].all()
    assert wrong.sum() == 5


def test_views_and_foreign_byte_orders(rng):
    stack = random_stack(rng, (6, 10, 12), "uint16")
    matrix = rng.normal(0, 0.5, (2, 3))
    for view in (stack[::2, ::-1, 1::3], np.moveaxis(stack[..., :3], -1, 0), stack[:3].astype(">u2")):
        agree(unmix(view, matrix), view, matrix, -3)
    before = stack.copy()
    unmix(stack[:3], matrix)
    np.testing.assert_array_equal(stack, before)


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


@pytest.mark.parametrize(
    ("source", "target", "shape", "pixels", "expected"),
    [
        ("uint8", "uint8", (32, 32), 10**9, True),
        ("uint8", "uint8", (33, 3), 1, False),  # many channels into integers: summed in float64
        ("uint8", "float32", (33, 3), 1, True),
        ("uint8", "float32", (3, 4096), 1, True),
        ("uint8", "float32", (4097, 3), 1, False),
        ("uint8", "float32", (3, 64), MAX_ELEMENTS // 64, True),
        ("uint8", "float32", (3, 64), MAX_ELEMENTS // 64 + 1, False),  # offsets of 32 bits
        ("float64", "float32", (3, 3), 1, False),
        ("uint8", "float64", (3, 3), 1, False),
    ],
)
def test_what_a_kernel_mixes(source, target, shape, pixels, expected):
    assert has_kernel(np.dtype(source), np.dtype(target), shape, pixels) is expected
