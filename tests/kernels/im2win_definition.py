"""Im2win by its definition in float64, and its kernels' own source run on the host."""

import numpy as np

from tests.kernels.binding import bind_to_host
from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from xcorr_app.gpu.im2win import bank_run
from xcorr_app.gpu.im2win import run as im2win_run
from xcorr_app.gpu.im2win.launches import (
    add_segments_launch,
    basic_launch,
    convolve_launch,
    transform_launch,
)
from xcorr_app.gpu.im2win.problem import stored_filters
from xcorr_app.gpu.runtime.limits import DeviceLimits


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


def start_on_host(folder, monkeypatch, names):
    """Make the device's entries run the kernels' source on NumPy arrays; what is started is added to `names`."""
    bank_run._kept_parts.cache_clear()
    monkeypatch.setattr(bank_run, "current_device", lambda: 0)
    bind_to_host(monkeypatch, folder, names)
    monkeypatch.setattr(im2win_run, "current_device", lambda: 0)
    monkeypatch.setattr(im2win_run, "device_limits", lambda device: DeviceLimits())


def transform_on_host(folder, images, problem):
    """The window tensor, computed by the kernel's source on the host, poisoned beforehand."""
    window = guarded(np.full(problem.window_shape, np.nan, np.float32))
    run_kernel(folder, transform_launch(problem), (guarded(images), window), problem.arguments())
    assert guards_are_whole(window)
    return window


def convolve_on_host(folder, images, filters, problem, *, implicit=False, segments=1, tuning=None, basic_rows=0):
    """Output of the kernels' source on the host, poisoned beforehand; `implicit`: without the transform."""
    source = guarded(images) if implicit else transform_on_host(folder, images, problem)
    output = guarded(np.full(problem.out_shape, np.nan, np.float32))
    if basic_rows:
        stored = guarded(stored_filters(filters))
        run_kernel(
            folder, basic_launch(problem, basic_rows, implicit=implicit), (source, stored, output), problem.arguments()
        )
    else:
        launch = convolve_launch(problem, implicit=implicit, segments=segments, tuning=tuning)
        further = launch.segments - 1
        workspace = guarded(np.full((further, *problem.out_shape), np.nan, np.float32))
        arrays = (source, guarded(stored_filters(filters)), output, workspace)
        run_kernel(folder, launch, arrays, (*problem.arguments(), *launch.extra))
        assert guards_are_whole(workspace)
        if further:
            add = add_segments_launch(problem.filters * problem.columns, launch.segments)
            run_kernel(folder, add, (output, workspace), add.extra)
    assert guards_are_whole(output)
    return output
