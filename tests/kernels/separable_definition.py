"""Terms for tests, and the fused pass: on a device, and on the host what it does there."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from scipy import ndimage

from tests.kernels.filter_definition import assert_pixels, into_new
from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from xcorr_app.gpu.stencil.separable import SeparableProblem, never_clips, separable_launch, terms_argument
from xcorr_app.gpu.stencil.separable_run import prepare_separable


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
