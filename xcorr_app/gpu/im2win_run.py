"""Im2win on the device: images and filters in, output out, the window tensor made part by part."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.gpu.compile import kernel_function
from xcorr_app.gpu.correlation_plan import device_limits
from xcorr_app.gpu.im2win_launch import basic_launch, convolve_launch, transform_launch
from xcorr_app.gpu.im2win_problem import Im2winProblem
from xcorr_app.gpu.launch import Launch
from xcorr_app.gpu.memory import with_second_try
from xcorr_app.gpu.placement import on_device_of

__all__ = ["WINDOW_BYTES", "im2win_on_device"]

WINDOW_BYTES = 2**30
"""Memory of the window tensor of a part, in bytes: enough blocks to fill a device, for most problems."""


def im2win_on_device(
    images: Any,
    filters: Any,
    stride: int = 1,
    *,
    form: str = "tiled",
    tuning: Mapping[str, int] | None = None,
    vector: int = 4,
    window_bytes: int = WINDOW_BYTES,
    out: Any = None,
) -> Any:
    """Correlate a batch of images with a bank of filters of as many channels; no flip, no padding.

    Parameters
    ----------
    images : cupy.ndarray
        (images, channels, height, width), float32. Copied where it is not dense.
    filters : cupy.ndarray
        (filters, channels, filter height, filter width), float32, on the same device.
    stride : int, optional
        Pixels between neighbouring outputs along both axes.
    form : str, optional
        ``"tiled"``, the high-performance kernel, or ``"basic"``.
    tuning : mapping, optional
        Macros of the tiled kernel that replace the table's.
    vector : int, optional
        Elements that a thread of the window transform writes at once, 4 or 1.
    window_bytes : int, optional
        Memory for the window tensor, in bytes; the images are worked on in parts that keep it (one image at least).
    out : cupy.ndarray, optional
        Dense float32 array to write into.

    Returns
    -------
    cupy.ndarray
        (images, filters, output rows, output columns), float32; the same bits for every form, tuning and part.

    Raises
    ------
    ShapeError
        Where shapes do not belong together.
    DataTypeError
        For other types than float32.
    ArgumentError
        For an unknown form, or where one image is too large for a launch.
    DeviceMemoryError
        Where window tensor and output do not fit.
    DeviceError
        Where a kernel does not compile, or the arrays live on two devices.
    """
    problem = _checked_problem(images, filters, stride, out)
    if form not in ("tiled", "basic"):
        raise ArgumentError(f"form must be tiled or basic, not {form!r}")
    cupy = sys.modules["cupy"]  # whose arrays these are

    def run() -> Any:
        result = cupy.empty(problem.out_shape, cupy.float32) if out is None else out
        dense = cupy.ascontiguousarray(images)
        stored = cupy.ascontiguousarray(filters.transpose(0, 1, 3, 2))  # columns of a filter side by side
        step = problem.images_per_part(window_bytes)
        window = cupy.empty(problem.with_images(step).window_shape, cupy.float32)
        for first in range(0, problem.images, step):
            part = problem.with_images(min(step, problem.images - first))
            _start(transform_launch(part, vector=vector), part, dense[first:], window)
            tiled = form == "tiled"
            launch = convolve_launch(part, tuning=tuning, device=device_limits()) if tiled else basic_launch(part)
            _start(launch, part, window, stored, result[first:])
        return result

    with on_device_of(images, filters):
        return with_second_try(run, what="Im2win's window tensor and output (a smaller window_bytes takes less)")


def _start(launch: Launch, part: Im2winProblem, *arrays: Any) -> None:
    function = kernel_function(launch.kernel, launch.defines, launch.shared_bytes)
    numbers = tuple(map(np.int32, part.arguments()))
    function((launch.blocks,), (launch.threads,), (*arrays, *numbers), launch.shared_bytes)


def _checked_problem(images: Any, filters: Any, stride: int, out: Any) -> Im2winProblem:
    if images.ndim != 4 or filters.ndim != 4 or images.shape[1] != filters.shape[1]:
        raise ShapeError(
            f"images {images.shape} and filters {filters.shape} must be (images, channels, height, width) and "
            "(filters, channels, height, width), with as many channels"
        )
    if images.dtype.name != "float32" or filters.dtype.name != "float32":
        raise DataTypeError(f"images ({images.dtype}) and filters ({filters.dtype}) must be float32")
    batch, channels, height, width = images.shape
    count, _, filter_height, filter_width = filters.shape
    problem = Im2winProblem(batch, channels, height, width, count, filter_height, filter_width, stride)
    if out is not None and (out.shape != problem.out_shape or out.dtype != "float32" or not out.flags.c_contiguous):
        raise ShapeError(f"out must be a dense float32 array of shape {problem.out_shape}, not {out.dtype} {out.shape}")
    return problem
