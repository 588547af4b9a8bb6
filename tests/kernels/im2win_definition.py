"""Im2win by its definition in float64, and its kernels' own source run on the host."""

from __future__ import annotations

import numpy as np

from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from xcorr_app.gpu.im2win_launch import basic_launch, convolve_launch, transform_launch


def windows_of(images, problem):
    """View of every output element's values: (images, channels, rows, columns, filter height, filter width)."""
    size = (problem.filter_height, problem.filter_width)
    windows = np.lib.stride_tricks.sliding_window_view(images, size, (2, 3))
    return windows[:, :, :: problem.stride, :: problem.stride]


def convolution_by_definition(images, filters, problem):
    """The sum over channels and taps, in float64."""
    windows = windows_of(images.astype(np.float64), problem)
    return np.einsum("irmnuv,jruv->ijmn", windows, filters.astype(np.float64), optimize=True)


def window_tensor_by_definition(images, problem):
    """window[i, r, m, k * filter_height + u] = image[i, r, m * stride + u, k]."""
    window = np.empty(problem.window_shape, images.dtype)
    for row in range(problem.out_height):
        first = row * problem.stride
        rows = images[:, :, first : first + problem.filter_height]
        window[:, :, row] = rows.transpose(0, 1, 3, 2).reshape(*images.shape[:2], -1)
    return window


def integers(problem, seed=3):
    """Random images and filters of small integers, whose sums float32 holds exactly."""
    rng = np.random.default_rng(seed)
    images = rng.integers(-9, 30, (problem.images, problem.channels, problem.height, problem.width))
    filters = rng.integers(-9, 10, (problem.filters, problem.channels, problem.filter_height, problem.filter_width))
    return images.astype(np.float32), filters.astype(np.float32)


def transform_on_host(folder, images, problem, vector=4):
    """The window tensor, computed by the kernel's source on the host, poisoned beforehand."""
    window = guarded(np.full(problem.window_shape, np.nan, np.float32))
    run_kernel(folder, transform_launch(problem, vector=vector), (guarded(images), window), problem.arguments())
    assert guards_are_whole(window)
    return window


def convolve_on_host(folder, images, filters, problem, *, tuning=None, basic_rows=0):
    """Output of the kernels' source on the host, poisoned beforehand: transform, then either form."""
    window = transform_on_host(folder, images, problem)
    stored = guarded(np.ascontiguousarray(filters.transpose(0, 1, 3, 2)))
    output = guarded(np.full(problem.out_shape, np.nan, np.float32))
    launch = basic_launch(problem, basic_rows) if basic_rows else convolve_launch(problem, tuning=tuning)
    run_kernel(folder, launch, (window, stored, output), problem.arguments())
    assert guards_are_whole(output)
    return output
