"""Im2win on the device: images and filters in, output out, the window tensor (where one is made) part by part."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any

from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.gpu.im2win.kernels import WHY_NOT, form_for
from xcorr_app.gpu.im2win.launches import (
    add_segments_launch,
    basic_launch,
    convolve_launch,
    filters_launch,
    transform_launch,
)
from xcorr_app.gpu.im2win.options import Im2winOptions, kernel_and_macros
from xcorr_app.gpu.im2win.problem import Im2winProblem
from xcorr_app.gpu.runtime.binder import bound, start
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.memory import with_second_try
from xcorr_app.gpu.runtime.placement import current_device, on_device_of

FORMS = tuple(WHY_NOT)

WINDOW_BYTES = 2**30
"""Memory of the window tensor of a part, in bytes: enough blocks to fill a device, for most problems."""


def im2win_on_device(
    images: Any,
    filters: Any,
    stride: int = 1,
    *,
    form: str | Im2winOptions = "auto",
    segments: int | None = None,
    tuning: Mapping[str, int] | None = None,
    vector: int = 4,
    window_bytes: int = WINDOW_BYTES,
    out: Any = None,
) -> Any:
    """Correlate a batch of images with a bank of filters of as many channels; no flip, no padding."""
    problem, (form, macros) = _checked_problem(images, filters, stride, out), kernel_and_macros(form)
    tuning = {**macros, **(tuning or {})}
    if form not in ("auto", *FORMS):
        raise ArgumentError(f"form must be auto, {', '.join(FORMS)}, not {form!r}")
    if form == "auto":
        form = form_for(problem)
    takes_images = form in ("implicit", "implicit-basic")
    step = problem.images_per_part() if takes_images else problem.images
    cupy = sys.modules["cupy"]  # whose arrays these are

    def run() -> Any:
        result = cupy.empty(problem.out_shape, cupy.float32) if out is None else out
        dense, taps = cupy.ascontiguousarray(images), _stored(problem, cupy.ascontiguousarray(filters))
        options: Any = {"segments": segments, "tuning": tuning, "window_bytes": window_bytes, "vector": vector}
        for first in range(0, problem.images, step):
            part, source = problem.with_images(min(step, problem.images - first)), dense[first:]
            bound_form(form, part, taps, **options)(source, result[first:])
        return result

    with on_device_of(images, filters):
        return with_second_try(run, what="Im2win's workspace and output (a smaller window_bytes may take less)")


def bound_form(
    form: str,
    part: Im2winProblem,
    taps: Any,
    *,
    plane_pitch: int | None = None,
    window_bytes: int = WINDOW_BYTES,
    vector: int = 4,
    **options: Any,
) -> Callable[[Any, Any], None]:
    """Bind a form's kernels to filters as `_stored` makes them; the result takes source and output."""
    if form == "implicit-basic":
        product = bound(basic_launch(part, implicit=True), part.arguments(plane_pitch))
        return lambda source, output: product(source, taps, output)
    options["plane_pitch"] = plane_pitch
    if form == "implicit":
        return bound_convolution(part, taps, **options)
    basic = form == "im2win-basic"
    return bound_windows(part, taps, basic=basic, window_bytes=window_bytes, vector=vector, **options)


def bound_convolution(
    part: Im2winProblem,
    taps: Any,
    *,
    plane_pitch: int | None = None,
    implicit: bool = True,
    segments: int | None = None,
    tuning: Mapping[str, int] | None = None,
) -> Callable[[Any, Any], None]:
    """Bind the high-performance kernel to filters as `_stored` makes them; the result takes source and output."""
    shared_by = 1 if plane_pitch is not None else segments
    limits = device_limits(current_device())
    launch = convolve_launch(part, implicit=implicit, segments=shared_by, tuning=tuning, device=limits)
    further = launch.segments - 1
    product = bound(launch, (*part.arguments(plane_pitch), *launch.extra))
    add = add_segments_launch(part.filters * part.columns, launch.segments) if further else None
    adds = None if add is None else bound(add, add.extra)

    def run(source: Any, output: Any) -> None:
        if adds is None:
            product(source, taps, output, output)  # in the workspace's place nothing is touched
            return
        workspace = sys.modules["cupy"].empty(further * part.filters * part.columns, "float32")
        product(source, taps, output, workspace)
        adds(output, workspace)

    return run


def bound_windows(
    part: Im2winProblem,
    taps: Any,
    *,
    basic: bool = False,
    plane_pitch: int | None = None,
    window_bytes: int = WINDOW_BYTES,
    vector: int = 4,
    segments: int | None = None,
    tuning: Mapping[str, int] | None = None,
) -> Callable[[Any, Any], None]:
    """Bind the kernels that make a window tensor, of some images at a time, and multiply it; as `bound_convolution`."""
    step = part.images_per_part(window_bytes)
    if basic and (segments or tuning):
        raise ArgumentError("im2win-basic has neither segments nor tunables")
    options: dict[str, Any] = {"plane_pitch": plane_pitch, "segments": segments, "tuning": tuning}

    @functools.cache
    def launches(images: int) -> tuple[Callable[..., None], Callable[[Any, Any], None]]:
        piece = part.with_images(images)
        transform = bound(transform_launch(piece, vector=vector), piece.arguments())
        if not basic:
            return transform, bound_convolution(piece, taps, implicit=False, **options)
        product = bound(basic_launch(piece), piece.arguments(plane_pitch))
        return transform, lambda window, output: product(window, taps, output)

    def run(source: Any, output: Any) -> None:
        window = sys.modules["cupy"].empty(part.with_images(step).window_shape, "float32")
        for first in range(0, part.images, step):
            transform, product = launches(min(step, part.images - first))
            transform(source[first:] if first else source, window)
            product(window, output[first:] if first else output)

    return run


def _stored(problem: Im2winProblem, bank: Any) -> Any:
    stored, launch = sys.modules["cupy"].empty(problem.stored_shape, "float32"), filters_launch(problem)
    start(launch, (bank, stored), launch.extra)
    return stored


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
