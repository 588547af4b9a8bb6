"""The kernels that look for pixels standing out, on the host, against array operations."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from tests.kernels.in_the_place_of_cupy import run_on_host
from xcorr_app.gpu.peaks import outlier_pixels
from xcorr_app.registration.weights.lines import GLANCE_STEPS, may_be_stuck
from xcorr_app.registration.weights.outliers import DEVIATIONS, NOISE_OF_STEPS, stands_out

SHAPES = [(41, 67), (16, 301)]


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
@pytest.mark.parametrize("shape", SHAPES)
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
    finite = np.where(np.isfinite(image), image, 0).astype(np.float64)
    steps = np.abs(np.diff(finite[::4], axis=1))
    assert counts.sum(axis=0).tolist() == [(steps < 0.3 * found.max()).sum(), (steps == 0).sum()]


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", ["float32", "uint16"])
@pytest.mark.parametrize("height", [0, 60, 100, 140, 180, 400])
@pytest.mark.parametrize("sign", [-1, 1])
def test_as_array_operations_say(host_builds, rng, monkeypatch, dtype, height, sign):
    image = 1000 + 8 * rng.normal(size=(41, 67))
    image[20, 31] = 1000 + sign * height
    image = (np.rint(image) if dtype == "uint16" else image).astype(dtype)
    run_on_host(monkeypatch, host_builds, outlier_pixels)
    said = outlier_pixels.look(image, DEVIATIONS * NOISE_OF_STEPS, GLANCE_STEPS).stands_out
    assert said == stands_out(image) == (height > 130)


@pytest.mark.share(9)
@pytest.mark.parametrize("dtype", ["float32", "uint16"])
@pytest.mark.parametrize("shape", [(64, 131), (203, 77)])
@pytest.mark.parametrize("lines", [(), (0,), (-1,), (30,), (40, 41), (-2, -1)])
@pytest.mark.parametrize("axis", [0, 1])
def test_lines_that_may_be_stuck_are_seen_as_on_a_cpu(host_builds, rng, monkeypatch, dtype, shape, lines, axis):
    run_on_host(monkeypatch, host_builds, outlier_pixels)
    heights = (0, 2, 8, 14, 20, 30, 80)
    said = []
    for height in heights:
        image = 100 + 9 * rng.normal(size=shape)
        part = slice(shape[1 - axis] // 4, shape[1 - axis] // 2)
        for line in lines:
            image[(line, part) if axis == 0 else (part, line)] += rng.choice([-1, 1]) * height
        image = (np.rint(np.clip(image, 0, None)) if dtype == "uint16" else image).astype(dtype)
        if dtype == "float32":
            image[5, 5:7] = np.nan, np.inf
        on_cpu = may_be_stuck(image)
        said.append(outlier_pixels.look(image, 12.0, GLANCE_STEPS).line_may_be_stuck)
        assert said[-1] == on_cpu
    assert said[0] is False
    assert said[-1] == bool(lines)


@pytest.mark.share(8)
@pytest.mark.parametrize("dtype", ["float32", "uint16", "uint8"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("edge", [None, 0, 1, 2, 3])
def test_what_three_images_hold(host_builds, rng, monkeypatch, dtype, shape, edge):
    run_on_host(monkeypatch, host_builds, outlier_pixels)
    images = (100 + 9 * rng.normal(size=(3, *shape))).astype(dtype)
    images[:, 3:9, 2:7] = images[0, 3:9, 2:7]
    image = images[1]
    if edge is not None:
        line = (image[0], image[-1], image[:, 0], image[:, -1])[edge]
        line[:] = 7
    if dtype == "float32":
        images[:, 5, 5] = np.nan
        images[0, -1, 3] = np.nan
    same = (images[1:] == images[:1]).all(axis=0).mean()
    edges = images[:, :: shape[0] - 1], images[:, :, :: shape[1] - 1].transpose(0, 2, 1)
    even = any((each == each[:, :, :1]).all(axis=2).any() for each in edges)
    seen = outlier_pixels.look(images[0], 12.0, 6.0, tuple(images))
    assert (seen.held, seen.even_edge) == (same, even)
    assert even == (edge is not None)
    images[2] = 5
    assert outlier_pixels.look(images[0], 12.0, 6.0, tuple(images)).held is None
