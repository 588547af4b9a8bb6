"""Channel mixing against the definition: einsum in float64, rounded half to even and clipped."""

from __future__ import annotations

import numpy as np
import pytest

from xcorr_app import unmix
from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.filtering.unmix import unmix_counted
from xcorr_app.gpu.runtime.arrays import to_host

TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "float64")


def random_stack(rng, shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return rng.normal(0, 100, shape).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def mixed(stack, matrix, axis):
    """Float64 definition, with the channels where they were."""
    values = np.moveaxis(stack.astype(np.float64), axis, -1)
    return np.moveaxis(np.einsum("kc,...c->...k", np.asarray(matrix, np.float64), values), -1, axis)


def stored(values, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    return np.clip(np.rint(values), limits.min, limits.max).astype(dtype)


def agree(found, stack, matrix, axis):
    """Integers exactly; floating point within 2e-6 of the sum of absolute products."""
    expected = mixed(stack, matrix, axis)
    if found.dtype.kind != "f":
        np.testing.assert_array_equal(found, stored(expected, found.dtype))
        return
    bound = mixed(np.abs(stack.astype(np.float64)), np.abs(matrix), axis)
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


@pytest.mark.parametrize(
    ("shape", "options", "error", "words"),
    [
        ((3, 4, 4), {"matrix": np.eye(2)}, ShapeError, "2 columns, stack has 3 channels along axis -3"),
        ((3, 4, 4), {"matrix": np.eye(3)[0]}, ShapeError, "matrix has shape"),
        ((3, 4, 4), {"matrix": [[1, 2], [3]]}, ArgumentError, "all of one length"),
        ((3, 4, 4), {"matrix": [[1, 2, np.nan]]}, ArgumentError, "not finite"),
        ((3, 4, 4), {"matrix": [[1, 2, 1e39]]}, ArgumentError, "too large"),
        ((4, 4), {}, ShapeError, "no axis -3"),
        ((3, 0, 4), {}, ShapeError, "no pixel"),
        ((3, 4, 4), {"white": 4095}, ArgumentError, "with from_log"),
        ((3, 4, 4), {"white": 0, "from_log": True}, ArgumentError, "above 0"),
        ((3, 4, 4), {"dtype": "uint8"}, ArgumentError, "dtype='uint8' is unknown"),
    ],
)
def test_what_is_refused(shape, options, error, words):
    with pytest.raises(error, match=words):
        unmix(np.ones(shape, np.uint8), **{"matrix": np.eye(3), **options})


def test_types_that_are_refused():
    with pytest.raises(DataTypeError, match="complex"):
        unmix(np.ones((1, 2, 2), complex), [[1]])
    with pytest.raises(DataTypeError, match="int64"):
        unmix([[[1]]], [[1]])
