"""Filters by definition: `scipy.ndimage` in float64, and what may differ from it."""

from __future__ import annotations

import math
import sys
from functools import partial

import numpy as np
from scipy import ndimage

from xcorr_app.gpu.stencil.problem import FilterProblem
from xcorr_app.gpu.stencil.reuse_run import prepare_filter

INTEGERS = ("uint8", "uint16", "int16")
TYPES = (*INTEGERS, "float32", "float64")


def filtered_by_definition(images, taps, boundary="reflect", outside=0.0, origin=(0, 0)):
    """Correlation of every image with the taps, in float64."""
    stack, taps = images.reshape(-1, *images.shape[-2:]).astype(np.float64), np.asarray(taps, np.float64)
    if boundary == "valid":
        windows = np.lib.stride_tricks.sliding_window_view(stack, taps.shape, axis=(1, 2))
        result = np.einsum("nyxfe,fe->nyx", windows, taps)
    else:
        options = {"mode": boundary, "cval": outside, "origin": origin}
        result = np.stack([ndimage.correlate(image, taps, **options) for image in stack])
    return result.reshape(*images.shape[:-2], *result.shape[-2:])


def random_images(shape, dtype, seed=1):
    """Noise over the whole range of an integer type, or -1 to 1."""
    rng = np.random.default_rng(seed)
    if dtype in INTEGERS:
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return (2 * rng.random(shape) - 1).astype(dtype)


def random_taps(shape, seed=2):
    """Taps of both signs whose results stay mostly within the images' range; exact in float32."""
    taps = np.random.default_rng(seed).random(shape, np.float32) - np.float32(0.3)
    return taps / np.abs(taps).sum()


def assert_filtered(result, images, taps, boundary="reflect", outside=0.0, origin=(0, 0)):
    """Fail unless a result is the definition's: float32 to 2e-6 of the largest sum, integers but at rounding's edge."""
    problem = FilterProblem(images.shape[-2:], taps.shape, 1, boundary, origin)
    expected = filtered_by_definition(images, taps, boundary, outside, origin)
    assert result.shape == (*images.shape[:-2], *problem.result_shape)
    largest = max(np.abs(images.astype(np.float64)).max(), abs(outside)) * np.abs(taps).sum()
    assert_pixels(result, expected, (1e-14 if images.dtype == result.dtype == np.float64 else 2e-6) * largest)


def assert_pixels(result, expected, tolerance, edge=1e-2):
    """Fail unless floats are within `tolerance`; integers rounded and clipped, within `edge` of a half either way."""
    assert result.shape == expected.shape
    if result.dtype.kind == "f":
        np.testing.assert_allclose(result, expected, rtol=0, atol=tolerance)
        return
    limits = np.iinfo(result.dtype)
    off = np.abs(result.astype(np.float64) - np.clip(np.rint(expected), limits.min, limits.max))
    at_the_edge = np.abs(expected - np.floor(expected) - 0.5) < edge
    assert (off[~at_the_edge] == 0).all()
    assert off.max() <= 1


def into_new(run, images, shape, dtype=None, out=None, clipped=None):
    """Result of what `run` does with CuPy images, in a new array if there is none."""
    if out is None:
        out = sys.modules["cupy"].empty((*images.shape[:-2], *shape), dtype or images.dtype)
    run(out.dtype.name)(images, out, clipped)
    return out


def filtered_on_device(images, taps, *, boundary="reflect", origin=(0, 0), dtype=None, out=None, clipped=None, **how):
    """Correlate CuPy images with taps by a kernel."""
    problem = FilterProblem(images.shape[-2:], taps.shape, math.prod(images.shape[:-2]), boundary, origin)
    run = partial(prepare_filter, problem, taps, image_type=images.dtype.name, **how)
    return into_new(lambda result: run(result_type=result), images, problem.result_shape, dtype, out, clipped)


def assert_all_is_written(cupy, run):
    """Fail unless ``run(images, out=out)`` writes all of an array and nothing beside it; returns both arrays."""
    images = cupy.asarray(random_images((2, 65, 131), "float32"))
    buffer = cupy.full(images.size + 512, cupy.nan, "float32")
    out = buffer[256:-256].reshape(images.shape)
    assert run(images, out=out) is out
    assert cupy.isfinite(out).all()
    assert cupy.isnan(buffer[:256]).all()
    assert cupy.isnan(buffer[-256:]).all()
    return images, out
