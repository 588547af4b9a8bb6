"""Kernels that spare the host array operations say on a device what those operations say on the host."""

from __future__ import annotations

import numpy as np
import pytest

from tests.device import NEEDS_DEVICE
from tests.registration.scenes import drifting, noise
from xcorr_app import estimate_shifts
from xcorr_app.correlation.batches import all_finite
from xcorr_app.correlation.standardize import flat_images, standardize
from xcorr_app.gpu.peaks.noise_sums import started_rows_and_products
from xcorr_app.gpu.peaks.outlier_pixels import look
from xcorr_app.gpu.peaks.standard_values import READ
from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.registration.measuring.verification import scores_by_definition
from xcorr_app.registration.parts import tiles
from xcorr_app.registration.parts.tile_agreement import DIFFERS
from xcorr_app.registration.quality import _mean_products
from xcorr_app.registration.standard_error.reference_slopes import ReferenceSlopes
from xcorr_app.registration.weights.lines import GLANCE_STEPS, may_be_stuck
from xcorr_app.registration.weights.outliers import DEVIATIONS, NOISE_OF_STEPS, stands_out

pytestmark = NEEDS_DEVICE


def images_of(rng, dtype, shape):
    images = 100 + 25 * rng.normal(size=shape)
    images = (np.rint(images) if np.dtype(dtype).kind != "f" else images - 100).astype(dtype)
    images[-1] = images[-1, 0, 0]  # flat
    return images


@pytest.mark.parametrize("shape", [(5, 33, 67), (2, 513, 771), (300, 61, 41)])
@pytest.mark.parametrize("dtype", sorted(READ))
@pytest.mark.parametrize("written", ["float32", "float64"])
def test_standardised_images(cupy, rng, shape, dtype, written):
    images = images_of(rng, dtype, shape)
    found, expected = standardize(cupy.asarray(images), written), standardize(images, written)
    assert found.values.dtype == written
    np.testing.assert_allclose(found.values.get(), expected.values, atol=1e-6 if written == "float32" else 1e-13)
    np.testing.assert_array_equal(found.flat.get(), expected.flat)
    np.testing.assert_array_equal(to_host(flat_images(cupy.asarray(images))), expected.flat)


@pytest.mark.parametrize("shape", [(61, 97), (3, 61, 97), (2, 3, 700, 801)])
@pytest.mark.parametrize("value", [None, np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(cupy, rng, shape, value):
    array = rng.normal(size=shape).astype(np.float32)
    if value is not None:
        array[(*(0 for _ in shape[:-2]), 60, 96)] = value
    assert all_finite(cupy.asarray(array)) == (value is None)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
def test_sums_of_rows(cupy, rng, dtype):
    images = images_of(rng, dtype, (3, 41, 301))
    exact = images.astype(np.float64)
    expected = np.stack([exact.sum(axis=2), (exact * exact).sum(axis=2)], axis=2)
    rows, products = started_rows_and_products(cupy.asarray(images), 8)()
    np.testing.assert_allclose(rows, expected, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(products, _mean_products(exact, 8), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", ["uint16", "float32"])
@pytest.mark.parametrize("height", [0, 60, 180, 400])
def test_pixels_that_stand_out(cupy, rng, dtype, height):
    image = 1000 + 8 * rng.normal(size=(241, 367))
    image[20, 31] = 1000 + height
    image = (np.rint(image) if dtype == "uint16" else image).astype(dtype)
    said = look(cupy.asarray(image), DEVIATIONS * NOISE_OF_STEPS, GLANCE_STEPS).stands_out
    assert said == stands_out(image) == (height > 130)


@pytest.mark.parametrize("dtype", ["uint16", "float32"])
@pytest.mark.parametrize("height", [0, 8, 20, 90])
@pytest.mark.parametrize("axis", [0, 1])
def test_lines_that_may_be_stuck(cupy, rng, dtype, height, axis):
    image = 1000 + 8 * rng.normal(size=(241, 1367))
    image[(30, slice(None)) if axis == 0 else (slice(None), 30)] += height
    image = (np.rint(image) if dtype == "uint16" else image).astype(dtype)
    said = look(cupy.asarray(image), DEVIATIONS * NOISE_OF_STEPS, GLANCE_STEPS).line_may_be_stuck
    assert said == may_be_stuck(image)
    assert said or height < 90
    assert not (said and height == 0)


@pytest.mark.parametrize("shape", [(61, 97), (387, 41), (512, 500)])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_slopes_of_references(cupy, rng, shape, count, weighted):
    kernel = np.outer(*(2 * [np.exp(-(np.arange(-12.0, 13) ** 2) / 9)])) if weighted else None
    images = (0.3 + 0.2 * rng.normal(size=(count, *shape))).astype(np.float32)
    clean = rng.uniform(0.3, 0.9, count)
    expected = ReferenceSlopes(images.astype(np.float64), kernel, clean)
    found = ReferenceSlopes(cupy.asarray(images), kernel, clean)
    assert found.tiles == expected.tiles
    np.testing.assert_allclose(found.noise.get(), expected.noise, rtol=1e-5)
    for ours, exact in ((found.factors, expected.factors), (found.sums, expected.sums)):
        scale = np.abs(exact).max(axis=tuple(range(1, exact.ndim)), keepdims=True)
        np.testing.assert_allclose(ours.get() / scale, exact / scale, atol=2e-5)


@pytest.mark.parametrize("deviation", [0.02, 0.3])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("each", [False, True])
def test_which_tiles_agree(cupy, deviation, dtype, each):
    drift = np.array([(0, 0), (1.5, -2.25), (3.25, 1), (-4.5, 4)])
    stack = drifting(drift, (201, 223), width=0.06)
    stack[1:, 50:120, 30:110] = stack[0, 90:160, 60:140]
    stack = 100 + 20 * (stack + noise(stack, deviation))
    stack = (np.clip(np.rint(stack), 0, 255) if dtype.startswith("uint") else stack).astype(dtype)
    images, shifts = (stack[:1].repeat(3, axis=0) if each else stack[:1]), -drift[1:]
    shifts[1] = np.nan
    found = tiles.look(cupy.asarray(images), cupy.asarray(stack[1:]), shifts).tiles
    expected = tiles.look(images, stack[1:], shifts).tiles
    assert (found == DIFFERS).any()
    # A tile at a limit may fall on either side of it.
    assert (np.nan_to_num(found, nan=2) != np.nan_to_num(expected, nan=2)).mean() < 0.005


@pytest.mark.parametrize("shape", [(3, 40), (233, 167)])
@pytest.mark.parametrize("one", [True, False])
def test_scores_around_peaks(cupy, rng, shape, one):
    peaks = np.array([(0, 0), (-2, 1), (shape[0] // 2, -shape[1] // 3), (1, -3)])
    references, frames = rng.normal(size=(1 if one else 4, *shape)), rng.normal(size=(4, *shape))
    found = scores_by_definition(cupy.asarray(references), cupy.asarray(frames), peaks, 0.25)
    np.testing.assert_allclose(found.get(), scores_by_definition(references, frames, peaks, 0.25), atol=1e-12)


@pytest.mark.parametrize("dtype", ["uint16", "float32"])
@pytest.mark.parametrize("deviation", [0.05, 1.0])
def test_the_whole_of_it(cupy, dtype, deviation):
    """All defaults on a device give what they give on the host."""
    drift = np.cumsum(np.random.default_rng(4).normal(0, 1.2, (30, 2)), axis=0)
    stack = drifting(drift, (131, 143), width=0.06)
    stack = np.clip(1000 + 60 * (stack + noise(stack, deviation)), 0, None).astype(dtype)
    ours, theirs = (estimate_shifts(each, "first", 14, verify=4) for each in (cupy.asarray(stack), stack))
    np.testing.assert_allclose(ours.shifts, theirs.shifts, atol=2e-3)
    np.testing.assert_allclose(ours.score, theirs.score, atol=1e-4)
    np.testing.assert_allclose(ours.sigma, theirs.sigma, rtol=0.03, atol=1e-4)
    assert ours.flags == theirs.flags
    assert ours.notes == theirs.notes
