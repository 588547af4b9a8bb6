"""Filters by definition, `scipy.ndimage` in float64, and what may differ; passes on a device and on the host."""

import math
import sys
from functools import partial

import numpy as np
from scipy import ndimage

from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from xcorr_app.gpu.stencil import sliding_run
from xcorr_app.gpu.stencil.cosine_series import start_table
from xcorr_app.gpu.stencil.problem import FilterProblem
from xcorr_app.gpu.stencil.reuse_run import prepare_filter
from xcorr_app.gpu.stencil.separable import SeparableProblem, never_clips, separable_launch, terms_argument
from xcorr_app.gpu.stencil.separable_run import prepare_separable
from xcorr_app.gpu.stencil.sliding import SlidingPass, packed_table, segment_rows, series_argument, sliding_launch

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


def random_terms(shape, count=1, seed=2):
    """Terms whose taps have both signs; results stay mostly within the images' range."""
    rng = np.random.default_rng(seed)
    terms = [tuple(rng.random(size) - 0.3 for size in shape) for _ in range(count)]
    scale = np.abs(multiplied_out(terms)).sum()
    return [(column / scale, row) for column, row in terms]


def gaussian(sigma):
    """One term, as `scipy.ndimage.gaussian_filter` has it."""
    radius = int(4 * sigma + 0.5)
    taps = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    taps /= taps.sum()
    return [(taps, taps)]


def multiplied_out(terms):
    """The dense taps that terms stand for."""
    return sum(np.outer(column, row) for column, row in terms)


def separable_by_definition(images, terms, boundary="reflect", outside=0.0, origin=(0, 0)):
    """Sum over the terms of `scipy.ndimage.correlate1d` along both axes, in float64.

    (`scipy.ndimage.correlate` folds an image of three columns wrongly at taps of fifty, under ``reflect``.)
    """
    stack = images.astype(np.float64)
    if boundary == "valid":
        windows = np.lib.stride_tricks.sliding_window_view
        column, row = (len(taps) for taps in terms[0])
        return sum(windows(windows(stack, column, -2) @ np.asarray(c), row, -1) @ np.asarray(r) for c, r in terms)
    total = 0.0
    for column, row in terms:
        options = {"mode": boundary, "cval": outside, "origin": origin[0]}
        down = ndimage.correlate1d(stack, column, -2, **options)
        options |= {"cval": outside * np.sum(column), "origin": origin[1]}
        total = total + ndimage.correlate1d(down, row, -1, **options)
    return total


def assert_separable(result, images, terms, boundary="reflect", outside=0.0, origin=(0, 0)):
    """Fail unless a result is the definition's: float32 to 2e-6 of the largest sum, integers but at rounding's edge."""
    taps, expected = multiplied_out(terms), separable_by_definition(images, terms, boundary, outside, origin)
    largest = max(np.abs(images.astype(np.float64)).max(), abs(outside)) * np.abs(taps).sum()
    assert_pixels(result, expected, (1e-14 if images.dtype == result.dtype == np.float64 else 2e-6) * largest)


def separable_on_device(images, terms, *, boundary="reflect", origin=(0, 0), dtype=None, out=None, clipped=None, **how):
    """Correlate CuPy images with terms by the kernel."""
    sizes = images.shape[-2:], tuple(map(len, terms[0])), math.prod(images.shape[:-2])
    problem = SeparableProblem(*sizes, boundary, origin, terms=len(terms))
    run = partial(prepare_separable, problem, tuple(terms), image_type=images.dtype.name, **how)
    return into_new(lambda result: run(result_type=result), images, problem.result_shape, dtype, out, clipped)


def separable_on_host(
    folder, images, terms, boundary="reflect", *, outside=0.0, origin=(0, 0), result_type=None, guard=True, **options
):
    """Results of the kernel's own source and the number of clipped ones; outputs poisoned and guarded."""
    shape = tuple(len(taps) for taps in terms[0])
    problem = SeparableProblem(images.shape[-2:], shape, len(images), boundary, origin, len(terms))
    types = {"image_type": images.dtype.name, "result_type": result_type or images.dtype.name}
    value = outside if boundary == "constant" else None
    options.setdefault("clips", not never_clips(terms, **types, outside=value))
    launch = separable_launch(problem, **types, **options)
    poison = np.nan if np.dtype(types["result_type"]).kind == "f" else 99
    results = guarded(np.full((len(images), *problem.result_shape), poison, types["result_type"]))
    clipped = np.full(1, 1000, np.uint64)
    inputs = guarded(images) if guard else images
    values = terms_argument(terms, outside, images.dtype.name)
    run_kernel(folder, launch, (inputs, results, clipped, values), launch.extra)
    assert guards_are_whole(results)
    return results, int(clipped[0]) - 1000


def gaussian_by_definition(images, sigma, boundary="reflect", outside=0.0):
    """Every image smoothed in float64; sigma for rows and columns."""
    stack = images.reshape(-1, *images.shape[-2:]).astype(np.float64)
    done = [ndimage.gaussian_filter(image, sigma, mode=boundary, cval=outside) for image in stack]
    return np.stack(done).reshape(images.shape)


def assert_smoothed(result, expected, largest, tolerance=3e-6):
    """Fail unless a result is the definition's to `tolerance` of the largest magnitude; integers rounded, clipped."""
    assert_pixels(result, expected, tolerance * largest, edge=tolerance * largest)


def smoothed_on_device(images, sigmas, boundary="reflect", *, outside=0.0, dtype=None, out=None, clipped=None):
    """Smooth CuPy images by both passes."""
    problem = SlidingPass(images.shape[-2:], math.prod(images.shape[:-2]), boundary)
    run = partial(sliding_run.prepare_sliding, problem, sigmas, images.dtype.name, outside=outside)
    return into_new(run, images, images.shape[-2:], dtype, out, clipped)


def pass_on_host(
    folder,
    images,
    series,
    boundary="reflect",
    *,
    outside=0.0,
    rows=None,
    result_type=None,
    sum_type="double",
    device=None,
):
    """Transposed result of one pass over (count, height, width) images, and the number of clipped results."""
    count, height, width = images.shape
    problem, result = SlidingPass((height, width), count, boundary), np.dtype(result_type or images.dtype)
    rows = rows or segment_rows(problem, series, sum_type=sum_type, device=device)
    table = start_table(series, height, rows, boundary)
    types = {"image_type": images.dtype.name, "result_type": result.name, "sum_type": sum_type}
    launch = sliding_launch(problem, series, table, rows, **types)
    results = guarded(np.full((count, width, height), np.nan if result.kind == "f" else 99, result))
    tables = packed_table(table, sum_type), table.first, table.outside
    clipped, values = np.zeros(1, np.uint64), series_argument(series, outside, sum_type)
    run_kernel(folder, launch, (guarded(images), results, clipped, *map(guarded, tables), values), launch.extra)
    assert guards_are_whole(results)
    return results, int(clipped[0])
