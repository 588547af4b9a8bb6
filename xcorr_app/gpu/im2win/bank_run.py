"""Banks of filters on the device: images are padded part by part and multiplied with all filters, as Im2win does."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.errors import DataTypeError, ShapeError
from xcorr_app.gpu.im2win.bank import PADDED_BYTES, BankPart, BankProblem, pad_launch
from xcorr_app.gpu.im2win.filters import Im2winFilters
from xcorr_app.gpu.im2win.problem import stored_filters
from xcorr_app.gpu.im2win.run import convolve_part, shallow_part
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.memory import with_smaller
from xcorr_app.gpu.runtime.placement import on_device_of
from xcorr_app.gpu.runtime.types import INPUT_TYPES

__all__ = ["PADDED_BYTES", "bank_on_device"]


def bank_on_device(
    images: Any,
    filters: npt.NDArray[Any],
    out: Any,
    *,
    kernel: str = "implicit",
    boundary: str = "reflect",
    outside: float = 0.0,
    padded_bytes: int = PADDED_BYTES,
) -> None:
    """Correlate a batch of images with a bank of filters of as many channels; stride 1, no flip."""
    if images.ndim != 4 or filters.ndim != 4 or images.shape[1] != filters.shape[1]:
        raise ShapeError(f"images {images.shape} and filters {filters.shape} need four axes, and as many channels")
    if images.dtype.name not in INPUT_TYPES:
        raise DataTypeError(f"images must be of {', '.join(INPUT_TYPES)}, not {images.dtype}")
    (count, channels, height, width), (number, _, *filter_size) = images.shape, filters.shape
    problem = BankProblem(count, channels, height, width, number, filter_size[0], filter_size[1], boundary)
    shape = (problem.images, problem.filters, *problem.result_shape)
    if out.shape != shape or out.dtype != "float32" or not out.flags.c_contiguous:
        raise ShapeError(f"out must be a dense float32 array of shape {shape}, not {out.dtype} {out.shape}")
    with on_device_of(images, out):
        with_smaller(
            functools.partial(_run, problem, kernel, images, filters, outside, out),
            _limits(problem, padded_bytes // 4),
            "no memory for the padded images of a few rows and the filters: free some, or use NumPy arrays",
        )


def _limits(problem: BankProblem, elements: int) -> Iterator[int]:
    """Elements of a part's padded images: what was asked for, then ever less, down to a filter's rows of one image."""
    fewest = problem.padded_elements(min(problem.filter_height, problem.result_shape[0]))
    while True:
        yield elements
        elements = max(problem.padded_elements(part.rows) * part.images for part in problem.parts(elements)) // 2
        if elements < fewest:
            return


def _run(
    problem: BankProblem,
    kernel: str,
    images: Any,
    filters: npt.NDArray[Any],
    outside: float,
    out: Any,
    elements: int,
) -> None:
    cupy = sys.modules["cupy"]  # whose arrays these are
    dense = cupy.ascontiguousarray(images)
    bank = np.ascontiguousarray(filters, np.float32)
    both = Im2winFilters(lambda: cupy.asarray(bank), lambda: cupy.asarray(stored_filters(bank)))
    for part in problem.parts(elements):
        _run_part(problem, part, kernel, dense, both, outside, out)


def _run_part(
    problem: BankProblem, part: BankPart, kernel: str, images: Any, both: Im2winFilters, outside: float, out: Any
) -> None:
    padded = sys.modules["cupy"].empty((part.images, *problem.padded_shape(part.rows)), "float32")
    pad = pad_launch(problem, part, image_type=images.dtype.name, outside=outside)
    start(pad, (images[part.first_image :], padded), pad.extra)
    rows, columns = problem.result_shape
    layer = problem.convolution(part)
    if part.rows < rows:  # its planes lie apart
        band = out[part.first_image, 0, part.first_row :]
        convolve_part(layer, padded, both, band, plane_pitch=rows * columns)
    elif kernel == "shallow":
        shallow_part(layer, padded, both, out[part.first_image :])
    else:
        convolve_part(layer, padded, both, out[part.first_image :])
