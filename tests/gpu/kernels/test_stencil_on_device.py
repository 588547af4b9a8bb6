"""Filter kernels on a device against scipy.ndimage in float64: sizes that no call of a user covers.

Types, boundaries, values that are not finite and counts of clipped pixels are asked through `convolve`
(tests/gpu/test_filters.py), and of each kernel on the host.
"""

from functools import partial

import numpy as np
import pytest

from tests.device import NEEDS_DEVICE
from tests.gpu.kernels.addresses import off_a_boundary
from tests.kernels.stencil_definition import (
    TYPES,
    assert_all_is_written,
    assert_filtered,
    assert_separable,
    assert_smoothed,
    filtered_by_definition,
    filtered_on_device,
    gaussian,
    gaussian_by_definition,
    random_images,
    random_taps,
    random_terms,
    separable_on_device,
    smoothed_on_device,
)
from xcorr_app.gpu.stencil import sliding_run
from xcorr_app.gpu.stencil.problem import BOUNDARIES

pytestmark = NEEDS_DEVICE


def check_separable(cupy, images, terms, boundary="reflect", outside=0.0, **options):
    result = separable_on_device(cupy.asarray(images), terms, boundary=boundary, outside=outside, **options).get()
    assert_separable(result, images, terms, boundary, outside)


@pytest.mark.parametrize("width", range(1, 64))
def test_every_width_of_a_filter(cupy, width):
    """With the types in turn."""
    taps = random_taps((1 + width * 5 % 63, width))
    for images in (random_images((1, 70, 500), "float32"), random_images((3, 200, 301), TYPES[width % 5])):
        assert_filtered(filtered_on_device(cupy.asarray(images), taps, dtype="float32").get(), images, taps)


@pytest.mark.parametrize("width", range(1, 64))
def test_the_published_exchange_takes_every_width(cupy, width):
    images, taps = random_images((2, 71, 301), "uint16"), random_taps((1 + width * 5 % 63, width))
    result = filtered_on_device(cupy.asarray(images), taps, kernel="exchange", dtype="float32").get()
    assert_filtered(result, images, taps)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
@pytest.mark.parametrize("shape", [(3, 3), (9, 9), (31, 31)])
def test_sums_in_double_precision(cupy, dtype, shape):
    images, taps = random_images((2, 70, 301), dtype), 5 * random_taps(shape).astype("float64")
    result = filtered_on_device(cupy.asarray(images), taps, double_sums=True).get()
    exact = filtered_by_definition(images, taps)
    if dtype == "float32":
        np.testing.assert_allclose(result, exact, rtol=1e-7, atol=1e-12)
        return
    sure = np.abs(exact - np.floor(exact) - 0.5) > 1e-9
    limits = np.iinfo(dtype)
    np.testing.assert_array_equal(result[sure], np.clip(np.rint(exact), limits.min, limits.max)[sure])


@pytest.mark.parametrize("rows", range(1, 130, 4))
def test_lengths_of_taps(cupy, rows):
    taps = (rows, 1 + rows * 7 % 129)
    check_separable(cupy, random_images((1, 170, 500), "float32"), random_terms(taps))
    check_separable(cupy, random_images((1, 170, 500), "uint8"), random_terms(taps, 2), "mirror")
    images = random_images((3, 2, 107, 1029), TYPES[rows // 4 % 5])
    check_separable(cupy, images, random_terms(taps), "constant", 17.3, dtype="float32")


@pytest.mark.parametrize("sigma", [1, 2, 4, 8])
@pytest.mark.parametrize(("lowest", "highest"), [(60000, 65535), (0, 65535), (100, 4000)])
def test_results_of_16_bits_are_those_of_float64(cupy, sigma, lowest, highest):
    rng = np.random.default_rng(sigma)
    images = rng.integers(lowest, highest, (3, 300, 515), "uint16", endpoint=True)
    images[:, 40:90, 20:290] = highest
    check_separable(cupy, images, gaussian(sigma))


@pytest.mark.parametrize("boundary", BOUNDARIES[:-1])
@pytest.mark.parametrize("sigma", [2.0, 8.0, 64.0, 250.0])
def test_every_boundary_and_length_of_sliding_sums(cupy, sigma, boundary):
    """Images longer and shorter than the window, as wide as a strip, or by one more or less."""
    for shape in ((2, 3, 131, 260), (1, 700, 33), (31, 1000), (2, 9, 20)):
        images = random_images(shape, "float32")
        result = smoothed_on_device(cupy.asarray(images), (sigma, sigma), boundary, outside=0.5).get()
        assert_smoothed(result, gaussian_by_definition(images, sigma, boundary, 0.5), 1)


def test_what_is_not_finite_stays_within_its_rectangle(cupy):
    images = random_images((2, 300, 200), "float32")
    images[1, 150, 100], images[1, 0, 199] = np.nan, -np.inf
    result = smoothed_on_device(cupy.asarray(images), (8.0, 4.0)).get()
    reached = np.zeros(images.shape, bool)
    reached[1, 118:183, 84:117] = reached[1, :33, 183:] = True
    np.testing.assert_array_equal(np.isnan(result), reached)
    expected = gaussian_by_definition(np.nan_to_num(images, posinf=0, neginf=0), (8.0, 4.0))
    assert_smoothed(result[~reached], expected[~reached], 1)


def test_results_that_do_not_fit_are_counted(cupy):
    images = (random_images((3, 90, 110), "float32") * 900).astype("float32")
    clipped = cupy.full(1, 5, cupy.uint64)
    result = smoothed_on_device(cupy.asarray(images), (2.0, 2.0), dtype="uint8", clipped=clipped).get()
    expected = gaussian_by_definition(images, 2.0)
    assert_smoothed(result, expected, 900, 1e-6)
    rounded = np.rint(expected)
    assert int(clipped[0]) == 5 + np.count_nonzero((rounded < 0) | (rounded > 255)) > 1000


def test_images_that_are_not_dense_and_stacks_in_parts(cupy, monkeypatch):
    monkeypatch.setattr(sliding_run, "BETWEEN_BYTES", 2 * 60 * 45 * 4)
    images = random_images((5, 120, 135), "float32")
    result = smoothed_on_device(cupy.asarray(images)[:, ::-2, 1::3], (3.0, 5.0)).get()
    assert_smoothed(result, gaussian_by_definition(images[:, ::-2, 1::3], (3.0, 5.0)), 1)


KERNELS = {"reuse": (5, 7), "reuse_wide": (12, 30), "exchange": (6, 11)}
WRITERS = [
    *(partial(filtered_on_device, taps=random_taps(shape), kernel=kernel) for kernel, shape in KERNELS.items()),
    *(partial(separable_on_device, terms=random_terms(taps)) for taps in ((9, 9), (33, 33), (65, 65), (101, 5))),
]


@pytest.mark.parametrize("run", WRITERS)
def test_every_result_is_written_and_nothing_else(cupy, run):
    assert_all_is_written(cupy, run)


def test_every_sliding_sum_is_written_even_over_its_images(cupy):
    images, expected = assert_all_is_written(cupy, partial(smoothed_on_device, sigmas=(4.0, 4.0)))
    assert smoothed_on_device(images, (4.0, 4.0), out=images) is images
    np.testing.assert_array_equal(images.get(), expected.get())


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kernel", ["reuse", "reuse_wide", "separable"])
def test_arrays_that_begin_off_a_16_byte_boundary(cupy, kernel, dtype):
    images, taps, terms = random_images((2, 60, 256), dtype), random_taps((4, 5)), random_terms((4, 5))
    there, out = (off_a_boundary(cupy, content) for content in (images, np.zeros_like(images)))
    if kernel == "separable":
        assert_separable(separable_on_device(there, terms, out=out).get(), images, terms)
    else:
        assert_filtered(filtered_on_device(there, taps, kernel=kernel, out=out).get(), images, taps)


def half(shape):
    """Taps of which the middle is a half, the others zero."""
    taps = np.zeros(shape, "float32")
    taps[tuple(size // 2 for size in shape)] = 0.5
    return taps


LARGE = [
    *(partial(filtered_on_device, taps=half(shape)) for shape in ((3, 3), (31, 31))),
    partial(separable_on_device, terms=[(half((17,)).astype(float), 2 * half((17,)).astype(float))]),
]


@pytest.mark.parametrize("run", LARGE)
def test_a_stack_beyond_two_to_the_31_elements(cupy, run):
    images = cupy.zeros((2100, 1024, 1024), "uint8")  # 2.2e9 elements
    images[-1, -1, -1] = 200
    result = run(images)
    assert int(result[-1, -1, -1]) == 100
    assert int(cupy.count_nonzero(result)) == 1


def test_sliding_sums_beyond_two_to_the_31_elements(cupy):
    images = cupy.zeros((2100, 1024, 1024), "uint8")
    images[-1] = 200
    result = smoothed_on_device(images, (16.0, 16.0))
    assert bool((result[-1] == 200).all())
    assert int(cupy.count_nonzero(result)) == 1024**2
