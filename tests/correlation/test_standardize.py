"""Images made ready for a product, from the smallest to the largest values of their type."""

import numpy as np
import pytest

from xcorr_app.correlation.standardize import flat_images, standardize, working_dtype
from xcorr_app.errors import DataTypeError
from xcorr_app.gpu.runtime.arrays import to_host


def expected(images):
    """Zero mean and largest deviation one, in extended precision."""
    values = np.asarray(images, dtype=np.longdouble)
    values = values - values.mean(axis=(-2, -1), keepdims=True)
    return (values / abs(values).max(axis=(-2, -1), keepdims=True)).astype(np.float64)


@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "uint16", "int16", "float16", "uint32", "int64", "float32", "float64"]
)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_zero_mean_and_largest_deviation_one(xp, rng, dtype, precision):
    images = (120 * rng.random((3, 7, 9))).astype(dtype)
    result = standardize(xp.asarray(images), precision)
    assert result.values.dtype == precision
    np.testing.assert_allclose(to_host(result.values), expected(images), atol=5e-7)
    np.testing.assert_array_equal(to_host(result.flat), [False] * 3)


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [
        ("float32", 1e30),
        ("float32", 1e37),
        ("float32", 1e-30),
        ("float32", 1e-33),
        ("float64", 1e30),
        ("float64", 1e-38),
        ("float64", 1e300),
        ("float64", 1e-300),
    ],
)
def test_huge_and_tiny_values(xp, rng, dtype, scale):
    images = (rng.normal(size=(2, 8, 8)) * scale).astype(dtype)
    result = standardize(xp.asarray(images), np.float32)
    np.testing.assert_allclose(to_host(result.values), expected(images), atol=5e-7)
    assert not to_host(result.flat).any()


def test_an_offset_costs_no_more_than_the_type_lost_already(xp, rng):
    images = (rng.normal(size=(1, 16, 16)) + 1e4).astype(np.float32)
    np.testing.assert_allclose(to_host(standardize(xp.asarray(images), np.float32).values), expected(images), atol=1e-3)
    images = rng.normal(size=(1, 16, 16)) + 1e6
    np.testing.assert_allclose(to_host(standardize(xp.asarray(images), np.float32).values), expected(images), atol=1e-6)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32", "float64"])
@pytest.mark.parametrize("value", [0, 1, 100, 127])
def test_flat_images_are_zero_and_marked(xp, dtype, value):
    images = np.full((2, 5, 5), value, dtype=dtype)
    images[1, 2, 2] = 3
    result = standardize(xp.asarray(images), np.float32)
    np.testing.assert_array_equal(to_host(result.flat), [True, False])
    np.testing.assert_array_equal(to_host(result.values)[0], np.zeros((5, 5)))


@pytest.mark.parametrize(
    ("dtype", "value"), [("float32", 0.1), ("float32", 1e30), ("float64", 0.1), ("float64", 1e300)]
)
def test_rounding_alone_leaves_an_image_flat(xp, dtype, value):
    images = np.full((1, 9, 11), value, dtype=dtype)
    images[0, 4, 4] = np.nextafter(images[0, 4, 4], np.dtype(dtype).type(np.inf))
    assert to_host(standardize(xp.asarray(images), dtype).flat)[0]


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@pytest.mark.parametrize(("step", "flat"), [(1, True), (256, True), (1 << 12, False)])
def test_long_integers_are_as_flat_as_the_same_values_in_float64(xp, dtype, step, flat):
    images = np.full((1, 6, 7), 1 << 60, dtype=dtype)
    images[0, 2, 3] += step
    for values in (images, images.astype(np.float64)):
        assert to_host(flat_images(xp.asarray(values))).tolist() == [flat]
        assert to_host(standardize(xp.asarray(values), np.float64).flat).tolist() == [flat]


@pytest.mark.parametrize("mate", [1e20, 1e-20, 0.0])
def test_an_image_is_the_same_bit_by_bit_whatever_comes_with_it(xp, rng, mate):
    image = rng.normal(size=(12, 12)).astype(np.float32)
    alone = to_host(standardize(xp.asarray(image[None]), np.float32).values)[0]
    pair = np.stack([image, (rng.normal(size=(12, 12)) * mate).astype(np.float32)])
    np.testing.assert_array_equal(to_host(standardize(xp.asarray(pair), np.float32).values)[0], alone)


@pytest.mark.parametrize("dtype", ["bool", "complex64", "complex128"])
def test_other_elements_are_refused_by_name(dtype):
    with pytest.raises(DataTypeError, match=dtype):
        working_dtype(np.zeros(3), np.zeros(3, dtype=dtype))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.int32, bool])
@pytest.mark.parametrize("shape", [(5, 7), (4, 5, 7), (2, 3, 1, 6), (3, 6, 1), (0, 4, 5)])
def test_integers_of_one_value_are_found_wherever_the_other_one_lies(dtype, shape):
    rng = np.random.default_rng(7)
    last = np.ones(shape, dtype)
    last[..., -1, -1] = 0
    for images in (np.ones(shape, dtype), last, (2 * rng.random(shape)).astype(dtype)):
        expected = images.min(axis=(-2, -1)) == images.max(axis=(-2, -1))
        np.testing.assert_array_equal(flat_images(images), expected)
    both = np.stack([np.ones(shape, dtype), last])
    np.testing.assert_array_equal(flat_images(both)[0], np.ones(shape[:-2], dtype=bool))
