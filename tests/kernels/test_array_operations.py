"""Kernels that take the place of array operations, run on the host and on a device: they say what those say."""

from dataclasses import astuple

import numpy as np
import pytest

from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from tests.kernels.in_the_place_of_cupy import run_on_host
from tests.registration.scenes import drifting, noise
from xcorr_app.correlation import standardize as standardizing
from xcorr_app.correlation.standardize import flat_images, standardize
from xcorr_app.gpu.peaks import (
    left_over,
    line_sums,
    noise_sums,
    outlier_pixels,
    reference_tiles,
    row_sums,
    standard_values,
    tile_sums,
    tile_verdict,
)
from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.registration.parts import tiles
from xcorr_app.registration.parts.tile_agreement import DIFFERS, LIMITS, edge_offsets, judged
from xcorr_app.registration.parts.tile_bins import binned, covered_by, sums_over_tiles
from xcorr_app.registration.pattern import one_layer
from xcorr_app.registration.quality import NOISE_PERIOD, _mean_products, signal_fraction_of
from xcorr_app.registration.stack.frames import ArrayFrames
from xcorr_app.registration.standard_error import reference_slopes
from xcorr_app.registration.standard_error.reference_slopes import ReferenceSlopes
from xcorr_app.registration.weights import alternating, line_offsets
from xcorr_app.registration.weights.filling import DEVIATIONS, NOISE_OF_STEPS, stands_out
from xcorr_app.registration.weights.line_offsets import middle_rows
from xcorr_app.registration.weights.lines import SAMPLE_STEPS, may_be_stuck


def stored(values, dtype):
    """Values as a camera stores them."""
    return (np.rint(values) if np.dtype(dtype).kind != "f" else values).astype(dtype)


@pytest.mark.parametrize("shape", [(1, 9, 7), (5, 33, 67), (3, 61, 301), (2, 513, 771), (300, 61, 41)])
@pytest.mark.parametrize("dtype", sorted(standard_values.READ))
@pytest.mark.parametrize("written", ["float32", "float64"])
def test_standardised_images(kernels_of, rng, shape, dtype, written):
    images = stored(100 + 25 * rng.normal(size=shape) - 100 * (dtype[0] == "f"), dtype)
    images[-1] = images[-1, 0, 0]  # flat
    images[0, -1, -1] = 3
    expected, flat = standardize(images, written), flat_images(images)
    put = kernels_of(standard_values, callers=[standardizing])
    found = standardize(put(images), written)
    assert found.values.dtype == written
    # In float64 a device adds in another order.
    tolerance = 1e-6 if written == "float32" else 1e-14 if put is np.asarray else 1e-13
    np.testing.assert_allclose(to_host(found.values), expected.values, atol=tolerance)
    np.testing.assert_array_equal(to_host(found.flat), expected.flat)
    np.testing.assert_array_equal(to_host(flat_images(put(images))), flat)
    assert flat[-1] == (len(images) > 1)


@pytest.mark.parametrize("magnitude", [1e30, 1e-30])
def test_magnitudes_far_from_one(kernels_of, rng, magnitude):
    images = (magnitude * (4 + rng.normal(size=(2, 31, 47)))).astype(np.float32)
    put = kernels_of(standard_values, callers=[standardizing])
    exact = images.astype(np.float64) - images.mean(axis=(1, 2), keepdims=True, dtype=np.float64)
    exact /= np.abs(exact).max(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(to_host(standardize(put(images), np.float32).values), exact, atol=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize("place", [None, (0, 0, 0), (1, 60, 96), (2, 0, 1)])
def test_values_that_are_not_finite_are_found(kernels_of, rng, value, place):
    images = rng.normal(size=(3, 61, 97)).astype(np.float32)
    if place is not None:
        images[place] = value
    put = kernels_of(standard_values)
    assert standard_values.all_finite(put(images)) == np.isfinite(images).all()


@pytest.mark.parametrize(
    ("shape", "period"), [((41, 67), 8), ((9, 300), 4), ((6, 4), 6), ((129, 1031), 8), ((67, 1501), 4)]
)
@pytest.mark.parametrize("dtype", ["float32", "uint8", "uint16", "int16"])
def test_sums_of_rows_and_mean_products(kernels_of, rng, shape, period, dtype):
    images = (100 + 20 * rng.normal(size=(3, *shape)).cumsum(axis=2) / shape[1]).astype(dtype)
    put = kernels_of(noise_sums, row_sums)
    rows, products = noise_sums.started_rows_and_products(put(images), period)()
    exact = images.astype(np.float64)
    expected = np.stack([exact.sum(axis=2), (exact * exact).sum(axis=2)], axis=2)
    np.testing.assert_allclose(rows, expected, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(products, _mean_products(exact, period), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [(61, 97), (233, 50), (387, 41), (512, 500)])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("uneven", [False, True])
def test_slopes_of_references(kernels_of, rng, shape, count, weighted, uneven):
    kernel = np.outer(*(2 * [np.exp(-(np.arange(-12.0, 13) ** 2) / 9)])) if weighted else None
    images = (0.3 + 0.2 * rng.normal(size=(count, *shape))).astype(np.float32)
    if uneven:
        images[:, 8:20] *= 9
    clean = rng.uniform(0.3, 0.9, count)
    # In double precision, which the kernel's sums have.
    expected = ReferenceSlopes(images.astype(np.float64), kernel, clean)
    put = kernels_of(row_sums, noise_sums, reference_tiles, callers=[reference_slopes])
    found = ReferenceSlopes(put(images), kernel, clean)
    looked_for = to_host(ReferenceSlopes(put(images), None).signal_fractions)
    np.testing.assert_allclose(
        looked_for, signal_fraction_of(_mean_products(images.astype(np.float64), NOISE_PERIOD)), rtol=1e-5
    )
    assert found.tiles == expected.tiles
    np.testing.assert_allclose(to_host(found.noise), expected.noise, rtol=1e-5)
    # A device filters the slopes by another engine.
    # Products of slopes with second slopes all but cancel in sums: little of them is left to be scaled by.
    sums = (found.sums[:12], expected.sums[:12], 2e-5), (found.sums[12:], expected.sums[12:], 2e-4)
    for ours, exact, on_host in ((found.factors, expected.factors, 2e-6), *sums):
        scale = np.abs(exact).max(axis=tuple(range(1, exact.ndim)), keepdims=True)
        atol = on_host if put is np.asarray else max(on_host, 2e-5)
        np.testing.assert_allclose(to_host(ours) / scale, exact / scale, atol=atol)


def protrusion(image):
    """The largest by definition."""
    finite = np.isfinite(image)
    padded = np.pad(np.where(finite, image, 0).astype(np.float64), 1, mode="reflect")
    height, width = image.shape
    around = np.stack(
        [padded[1 + i : 1 + i + height, 1 + j : 1 + j + width] for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
    )
    middle = padded[1:-1, 1:-1]
    out = np.maximum(middle - around.max(axis=0), around.min(axis=0) - middle)
    return max(0.0, out[finite].max())


@pytest.mark.share(4)
@pytest.mark.parametrize("shape", [(41, 67), (16, 301)])
@pytest.mark.parametrize("dtype", ["float32", "uint16", "uint8"])
@pytest.mark.parametrize("place", [None, (0, 0), (15, 66), (3, 0), (7, 9)])
def test_the_pixel_that_stands_out_most_and_small_steps(host_builds, rng, shape, dtype, place):
    image = (100 + 9 * rng.normal(size=shape)).astype(dtype)
    if place is not None:
        image[place] = 0 if dtype == "uint8" else 250
    if dtype == "float32":
        image[5, 5:7] = np.nan, np.inf
    found = guarded(np.full(256, np.nan))
    run_kernel(host_builds, outlier_pixels.outlier_pixels_launch(dtype), (guarded(image), found), (*shape, 256))
    assert guards_are_whole(found)
    assert found.max() == protrusion(image)
    assert (found >= 0).all()
    counts = guarded(np.full((256, 2), -1, np.int32))
    launch = outlier_pixels.small_steps_launch(dtype, 0.3)
    run_kernel(host_builds, launch, (guarded(image), found, counts), (*shape, 256))
    assert guards_are_whole(counts)
    steps = np.abs(np.diff(np.where(np.isfinite(image), image, 0).astype(np.float64)[::4], axis=1))
    assert counts.sum(axis=0).tolist() == [(steps < 0.3 * found.max()).sum(), (steps == 0).sum()]


@pytest.mark.share(4)
@pytest.mark.parametrize("shape", [(41, 67), (241, 367)])
@pytest.mark.parametrize("dtype", ["float32", "uint16"])
@pytest.mark.parametrize("height", [0, 60, 100, 140, 180, 400])
@pytest.mark.parametrize("sign", [-1, 1])
def test_pixels_that_stand_out(kernels_of, rng, shape, dtype, height, sign):
    image = 1000 + 8 * rng.normal(size=shape)
    image[20, 31] = 1000 + sign * height
    image, put = stored(image, dtype), kernels_of(outlier_pixels)
    said = outlier_pixels.look(put(image), DEVIATIONS * NOISE_OF_STEPS, SAMPLE_STEPS).stands_out
    assert said == stands_out(image) == (height > 130)


@pytest.mark.share(9)
@pytest.mark.parametrize("dtype", ["float32", "uint16"])
@pytest.mark.parametrize("shape", [(64, 131), (203, 77), (241, 1367)])
@pytest.mark.parametrize("lines", [(), (0,), (-1,), (30,), (40, 41), (-2, -1)])
@pytest.mark.parametrize("axis", [0, 1])
def test_lines_that_may_be_stuck(kernels_of, rng, dtype, shape, lines, axis):
    put, said = kernels_of(outlier_pixels), []
    for height in (0, 2, 8, 14, 20, 30, 80):
        image = 100 + 9 * rng.normal(size=shape)
        part = slice(shape[1 - axis] // 4, shape[1 - axis] // 2)
        for line in lines:
            image[(line, part) if axis == 0 else (part, line)] += rng.choice([-1, 1]) * height
        image = stored(np.clip(image, 0, None) if dtype == "uint16" else image, dtype)
        if dtype == "float32":
            image[5, 5:7] = np.nan, np.inf
        said.append(outlier_pixels.look(put(image), 12.0, SAMPLE_STEPS).line_may_be_stuck)
        assert said[-1] == may_be_stuck(image)
    assert said[0] is False
    assert said[-1] == bool(lines)


@pytest.mark.share(8)
@pytest.mark.parametrize("dtype", ["float32", "uint16", "uint8"])
@pytest.mark.parametrize("shape", [(41, 67), (16, 301)])
@pytest.mark.parametrize("edge", [None, 0, 1, 2, 3])
def test_what_three_images_hold(kernels_of, rng, dtype, shape, edge):
    images = (100 + 9 * rng.normal(size=(3, *shape))).astype(dtype)
    images[:, 3:9, 2:7] = images[0, 3:9, 2:7]
    if edge is not None:
        (images[1, 0], images[1, -1], images[1, :, 0], images[1, :, -1])[edge][:] = 7
    if dtype == "float32":
        images[:, 5, 5] = np.nan
        images[0, -1, 3] = np.nan
    same = (images[1:] == images[:1]).all(axis=0).mean()
    edges = images[:, :: shape[0] - 1], images[:, :, :: shape[1] - 1].transpose(0, 2, 1)
    even = any((each == each[:, :, :1]).all(axis=2).any() for each in edges)
    put = kernels_of(outlier_pixels)
    seen = outlier_pixels.look(put(images[0]), 12.0, 6.0, tuple(put(images)))
    assert (seen.held, seen.even_edge) == (same, even)
    assert even == (edge is not None)
    images[2] = 5
    assert outlier_pixels.look(put(images[0]), 12.0, 6.0, tuple(put(images))).held is None


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
@pytest.mark.parametrize("shape", [(64, 91), (131, 70), (301, 97)])
def test_sums_over_lines(kernels_of, rng, dtype, shape):
    y, x = np.mgrid[: shape[0], : shape[1]]
    scene = 90 + 40 * np.sin(x / 5 + 0.7 * (y % 2)) * np.cos(y / 7) + 9 * rng.normal(size=shape)
    images = np.stack([scene + 5 * rng.normal(size=shape), scene[::-1], scene + 9 * rng.normal(size=(shape[0], 1))])
    images = np.rint(images.clip(0, 250)).astype(dtype)
    middle, exact = middle_rows(shape[0]), images.astype(np.float64)
    pairs = (exact[:, middle].shape[1] - 1) // 2
    put = kernels_of(line_sums)
    (shared, own), means = line_sums.line_sums((put(images[0]), put(images[1])), put(images[2]), middle.start, pairs)
    found, surely = alternating.offsets(shared, own)
    expected, of_these = alternating.odd_rows(exact[:2, middle])
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_array_equal(surely, of_these)
    assert abs(expected[0]) > 0.1
    for axis, groups in zip((2, 1), means, strict=True):
        ours, differ = line_offsets._of_groups(groups[None])
        offsets, surely = line_offsets._differ(exact[2:], axis)
        np.testing.assert_allclose(ours, offsets, rtol=1e-9, atol=1e-9)
        assert differ == surely
    assert line_offsets._of_groups(means[0][None])[1]


def series(shape, dtype, drift, deviation, still=0.0):
    clean = drifting(drift, shape, width=0.05, seed=3)
    frames = clean + noise(clean, deviation, 5)
    frames += still * np.sin(np.arange(shape[1]) * 0.9)
    frames *= (1 - 0.1 * np.arange(len(frames)))[:, None, None]
    top, middle = (110, 120) if dtype == "uint8" else (3000, 9000)
    return np.rint(middle + top / 5 * frames).clip(0, 2 * middle).astype(dtype)


@pytest.mark.parametrize(
    ("dtype", "shape"), [("uint8", (61, 90)), ("uint16", (97, 71)), ("int16", (203, 195)), ("uint16", (512, 300))]
)
@pytest.mark.parametrize("still", [0.0, 0.5])
@pytest.mark.parametrize("few", [(0, 2), (1, 2, 4, 5, 6)])
def test_what_aligned_frames_leave(kernels_of, rng, dtype, shape, still, few):
    drift = rng.normal(0, 2.5, (7, 2))
    frames, numbers = series(shape, dtype, drift, 0.3, still), np.array(few)
    put = kernels_of(left_over, callers=[one_layer])
    found = one_layer.residual_in_place(ArrayFrames(put(frames)), numbers, -drift[numbers])
    images, shifts = frames[numbers].astype(np.float64), -drift[numbers]
    if min(shape) >= one_layer.BINNED_FROM:
        images, shifts = binned(images), shifts / 2
    expected = one_layer.left_over(images, shifts)
    np.testing.assert_allclose(astuple(found)[:4], astuple(expected)[:4], rtol=2e-3, atol=1e-6)
    assert found.is_little == expected.is_little
    assert not (found.is_little and still)


def test_nothing_is_said_where_kernels_cannot_read_or_frames_share_too_little(kernels_of):
    frames = series((61, 90), "uint16", np.zeros((3, 2)), 1.0)
    put, in_place = kernels_of(left_over, callers=[one_layer]), one_layer.residual_in_place
    assert in_place(ArrayFrames(put(frames.astype(np.float32))), np.arange(3), np.zeros((3, 2))) is None
    far = np.array([[0.0, 0.0], [45.0, 0.0], [0.0, 0.0]])
    assert in_place(ArrayFrames(put(frames)), np.arange(3), far) == one_layer.UNKNOWN
    assert in_place(ArrayFrames(put(frames)), np.arange(1), far[:1]) == one_layer.UNKNOWN


@pytest.mark.parametrize("shape", [(101, 123), (201, 223)])
@pytest.mark.parametrize("deviation", [0.02, 0.3])
@pytest.mark.parametrize("dtype", ["float32", "uint16", "uint8"])
@pytest.mark.parametrize("each", [False, True])
def test_which_tiles_agree(kernels_of, shape, deviation, dtype, each):
    """Kernels and what is made of their sums say the same of a scene of which a part shows something else."""
    drift = np.array([(0, 0), (1.5, -2.25), (3.25, 1), (-4.5, 4)])
    stack = drifting(drift, shape, width=0.06)
    stack[1:, 20:70, 30:80] = stack[0, 45:95, 5:55]
    stack = 110 + 20 * (stack + noise(stack, deviation))
    stack = stored(np.clip(stack, 0, 255) if dtype == "uint8" else stack, dtype)
    images, shifts = stack[:1].repeat(3, axis=0) if each else stack[:1], -drift[1:]
    shifts[1] = np.nan
    expected = tiles.look(images, stack[1:], shifts)
    put = kernels_of(tile_sums, tile_verdict, row_sums, callers=[tiles])
    found = tiles.look(put(images), put(stack[1:]), shifts)
    # On a device, which adds in another order, a tile at a limit may fall on either side of it.
    differ = (np.nan_to_num(found.tiles, nan=2) != np.nan_to_num(expected.tiles, nan=2)).mean()
    assert differ <= (0 if put is np.asarray else 0.005)
    assert (found.tiles == DIFFERS).any()
    if put is np.asarray:
        np.testing.assert_allclose(found.inlier_fraction, expected.inlier_fraction)
        np.testing.assert_allclose(found.edges, expected.edges, rtol=1e-5)


@pytest.mark.parametrize(("count", "tiles_of"), [(3, (5, 9)), (2, (17, 23))])
@pytest.mark.parametrize("correlated", [1.0, 14.1])
def test_verdicts_by_sums(host_builds, monkeypatch, rng, count, tiles_of, correlated):
    """Of scenes that turn by little, of which some tiles differ; with tiles that no frame covers."""
    size, shape = 8, (8 * tiles_of[0] + 3, 8 * tiles_of[1] + 5)
    grid = (4 * tiles_of[0] + 1, 4 * tiles_of[1] + 2)
    y, x = np.mgrid[: grid[0], : grid[1]]
    waves = np.sin(y / 2.1 + 0.4 * np.sin(x / 3)), np.cos(x / 2.3 + 0.3 * np.sin(y / 5))
    g = np.repeat((waves[0] + waves[1])[None], count, axis=0)
    turn = np.array([0.0, 0.03, -0.02])[:count, None, None]
    slope_y, slope_x = np.gradient(g[0])
    f = g + turn * ((x - grid[1] / 2) * slope_y - (y - grid[0] / 2) * slope_x) + 0.01 * rng.normal(size=g.shape)
    f[0, :9, :14] = rng.normal(size=(9, 14))
    whole = np.array([(0, 0), (5, -9), (-3, 2)])[:count]
    sums = sums_over_tiles(f, g, rng.uniform(-0.1, 0.1, (count, 2)), size // 2, tiles_of)
    level, known = np.full(count, 1e-4), np.arange(count) != 2
    covered = covered_by(shape, size, tiles_of, whole)
    expected = judged(sums, covered, (size // 2) ** 2, level, correlated, known)
    edges = edge_offsets(sums, covered & known[:, None, None], size, shape)
    assert (expected[0] == DIFFERS).any()
    assert edges.max() > 0.02
    run_on_host(monkeypatch, host_builds, tile_verdict)
    smoothed = correlated > 1
    limits = LIMITS._replace(correlated=correlated)
    levels = np.full((count, 3), np.nan)
    levels[:, 2] = level * (2 * correlated if smoothed else 1.0) / 2
    offsets = np.where(known[:, None], np.zeros((count, 2)), np.nan)
    both = guarded(levels), guarded(levels[:1])
    arrays = guarded(sums), guarded(whole.astype(np.int32)), guarded(offsets)
    found = tile_verdict.started_verdict(*arrays, both, shape, size, limits, smoothed=smoothed)()
    np.testing.assert_array_equal(found.tiles, expected[0])
    np.testing.assert_allclose(found.inlier_fraction, expected[1])
    np.testing.assert_allclose(found.edges, edges, rtol=1e-6)
    np.testing.assert_allclose(found.noise, levels[:, 2])
