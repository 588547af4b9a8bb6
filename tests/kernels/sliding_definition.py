"""Sliding sums by definition: `scipy.ndimage` in float64; and one pass of the kernel's own source on the host."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from scipy import ndimage

from tests.kernels.filter_definition import assert_pixels, into_new
from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from xcorr_app.gpu.stencil import sliding_run
from xcorr_app.gpu.stencil.cosine_series import start_table
from xcorr_app.gpu.stencil.sliding import SlidingPass, packed_table, segment_rows, series_argument, sliding_launch


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
    tuning=None,
    device=None,
):
    """Transposed result of one pass over (count, height, width) images, and the number of clipped results."""
    count, height, width = images.shape
    problem, result = SlidingPass((height, width), count, boundary), np.dtype(result_type or images.dtype)
    rows = rows or segment_rows(problem, series, sum_type=sum_type, device=device)
    table = start_table(series, height, rows, boundary)
    types = {"image_type": images.dtype.name, "result_type": result.name, "sum_type": sum_type}
    launch = sliding_launch(problem, series, table, rows, **types, tuning=tuning)
    results = guarded(np.full((count, width, height), np.nan if result.kind == "f" else 99, result))
    tables = packed_table(table, sum_type), table.first, table.outside
    clipped, values = np.zeros(1, np.uint64), series_argument(series, outside, sum_type)
    run_kernel(folder, launch, (guarded(images), results, clipped, *map(guarded, tables), values), launch.extra)
    assert guards_are_whole(results)
    return results, int(clipped[0])
