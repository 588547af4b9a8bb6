"""The pointwise kernels on the device against the definition in float64; outputs poisoned, every type, sizes odd."""

from itertools import product

import numpy as np
import pytest

from tests.device import NEEDS_DEVICE
from tests.gpu.kernels.addresses import off_a_boundary
from tests.kernels.filter_launches import POINTWISE_LAYERS
from tests.kernels.pointwise_definition import (
    assert_mixed,
    is_exact,
    random_matrix,
    random_stack,
)
from xcorr_app.gpu.pointwise import run as pointwise_run
from xcorr_app.gpu.pointwise.run import COUNTERS, pointwise_on_device

pytestmark = NEEDS_DEVICE


def check(cupy, shape, axis, filters, dtype="float32", *, white=None, clip=False, target=None, **options):
    """Mix a random stack into a poisoned array, and compare."""
    stack, matrix = random_stack(shape, dtype), random_matrix(filters, shape[axis])
    result_type = np.dtype(target or dtype)
    result_shape = list(shape)
    result_shape[axis] = filters
    buffer = cupy.full(int(np.prod(result_shape)) + 64, np.nan if result_type.kind == "f" else 99, result_type)
    out = buffer[32:-32].reshape(result_shape)
    clipped = cupy.zeros(COUNTERS, cupy.uint64)
    how = {"target": target, "log_white": white, "clip": clip, "clipped": clipped, "out": out, **options}
    assert pointwise_on_device(cupy.asarray(stack), matrix, axis, **how) is out
    counted = int(clipped.sum())
    exact = is_exact(stack, matrix, result_type, white) and options.get("kernel", "auto") in ("auto", "mix")
    assert_mixed(out.get(), stack, matrix, axis, white=white, clip=clip, exact=exact, counted=counted)
    rims = np.concatenate([buffer[:32].get(), buffer[-32:].get()])
    assert (np.isnan(rims) if result_type.kind == "f" else rims == 99).all()
    return out


TYPES = ("uint8", "uint16", "int16")
PLACES = [((3, 5, 130, 257), -3), ((2, 5, 64, 128), -3), ((131, 77, 5), -1), ((5, 9973), 0)]
FEW = product((1, 2, 3, 4, 8, 9, 16, 31, 32), (1, 2, 3, 4, 8, 15, 16, 32), ("float32", "uint16"))
BLOCKING = {"kernel": "blocking"}
CASES = [
    *(
        (shape, axis, 4, {"dtype": dtype, "target": target, **options})
        for (shape, axis), dtype, target in product(PLACES, (*TYPES, "float32"), (None, "float32"))
        for options in ({}, {"clip": True}, {"white": 150.0})
    ),
    *(
        (shape, 1, filters, {"dtype": dtype})
        for channels, filters, dtype in FEW
        for shape in ((2, channels, 100, 132), (2000, channels))
    ),
    # Very many channels, layers of networks, integers.
    *(
        ((channels, pixels), 0, filters, BLOCKING)
        for channels, filters, pixels in ((4096, 3, 50), (3, 4096, 50), (4096, 4096, 33))
    ),
    *(
        ((3, channels, side, side), 1, filters, {"kernel": kernel})
        for (channels, filters, side), kernel in product(POINTWISE_LAYERS, ("blocking", "auto"))
    ),
    *(
        ((3, 70, 33, 35), 1, 60, {"dtype": dtype, **BLOCKING, **options})
        for dtype, options in product(TYPES, ({}, {"clip": True}, {"white": 99.0, "target": "float32"}))
    ),
]
"""Shapes, axes of the channels, numbers of filters, and how."""


@pytest.mark.parametrize(("shape", "axis", "filters", "how"), CASES)
def test_products_equal_the_definition(cupy, shape, axis, filters, how):
    check(cupy, shape, axis, filters, **how)


@pytest.mark.parametrize("seed", range(40))
def test_random_sizes(cupy, seed):
    rng = np.random.default_rng(seed)
    channels, filters = (int(rng.integers(1, rng.choice([40, 200, 1200]))) for _ in range(2))
    outer, inner = int(rng.integers(1, 9)), int(rng.integers(1, 700))
    check(cupy, (outer, channels, inner), 1, filters, kernel="blocking")
    check(cupy, (outer * inner, channels), 1, filters, kernel="blocking")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("kernel", "channels"), [("mix", 30), ("blocking", 60)])
def test_a_bad_value_stays_in_its_pixel(cupy, kernel, channels, bad):
    stack, matrix = random_stack((3, channels, 14, 14), "float32"), random_matrix(25, channels)
    stack[1, 3, 5, 11] = bad
    wrong = ~np.isfinite(pointwise_on_device(cupy.asarray(stack), matrix, 1, kernel=kernel).get())
    assert wrong[1, :, 5, 11].all()
    assert wrong.sum() == 25


@pytest.mark.parametrize("kernel", ["mix", "blocking"])
def test_the_same_bits_every_run(cupy, kernel):
    stack, matrix = cupy.asarray(random_stack((2, 32, 7, 7), "float32")), random_matrix(32, 32)
    first = pointwise_on_device(stack, matrix, kernel=kernel).get()
    for _ in range(3):
        found = pointwise_on_device(stack, matrix, kernel=kernel).get()
        np.testing.assert_array_equal(found, first)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("kernel", ["mix", "blocking"])
def test_arrays_that_begin_off_a_16_byte_boundary(cupy, kernel, dtype):
    for shape, axis in (((2, 6, 32, 32), 1), ((1024, 6), 1)):
        stack, matrix = random_stack(shape, dtype), random_matrix(5, 6)
        found = pointwise_on_device(off_a_boundary(cupy, stack), matrix, axis, kernel=kernel).get()
        assert_mixed(found, stack, matrix, axis)


def test_a_stack_beyond_two_to_the_31_elements(cupy):
    stack = cupy.zeros((140, 4, 2048, 2048), "uint8")  # 2.3e9 elements
    stack[-1, 3, -1, -1] = 200
    matrix = np.zeros((4, 4))
    matrix[2, 3] = 0.5
    found = pointwise_on_device(stack, matrix, 1)
    assert int(found[-1, 2, -1, -1]) == 100
    assert int(cupy.count_nonzero(found)) == 1


def test_many_channels_in_parts(cupy, monkeypatch):
    monkeypatch.setattr("xcorr_app.gpu.pointwise.kernels.MAX_ELEMENTS", 3 * 50 * 90)
    pointwise_run._bound_parts.cache_clear()
    pointwise_run._kept_launches.cache_clear()
    check(cupy, (8, 50, 90), 1, 40)
    pointwise_run._bound_parts.cache_clear()
    pointwise_run._kept_launches.cache_clear()
