"""Im2win on the device: forms bound to filters, which take images and output; the window tensor is made in parts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.im2win.launches import add_segments_launch, basic_launch, convolve_launch, transform_launch
from xcorr_app.gpu.im2win.problem import Im2winProblem
from xcorr_app.gpu.runtime.arrays import empty
from xcorr_app.gpu.runtime.binder import bound
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device

WINDOW_BYTES = 2**30
"""Memory of the window tensor of a part, in bytes: enough blocks to fill a device, for most problems."""


def bound_form(
    form: str,
    part: Im2winProblem,
    taps: Any,
    *,
    plane_pitch: int | None = None,
    window_bytes: int = WINDOW_BYTES,
    tuning: Mapping[str, int] | None = None,
) -> Callable[[Any, Any], None]:
    """Bind a form's kernels to filters as `stored_filters` makes them; the result takes images and output."""
    if form == "implicit":
        return _bound_convolution(part, taps, plane_pitch, tuning, implicit=True)
    if form == "im2win":
        product = functools.partial(_bound_convolution, taps=taps, plane_pitch=plane_pitch, tuning=tuning)
        return _bound_windows(part, window_bytes, functools.partial(product, implicit=False))
    if tuning:
        raise ArgumentError(f"{form} has no tunables")
    if form == "implicit-basic":
        return _bound_basic(part, taps, plane_pitch, implicit=True)
    basic = functools.partial(_bound_basic, taps=taps, plane_pitch=plane_pitch, implicit=False)
    return _bound_windows(part, window_bytes, basic)


def _bound_basic(
    part: Im2winProblem, taps: Any, plane_pitch: int | None, *, implicit: bool
) -> Callable[[Any, Any], None]:
    product = bound(basic_launch(part, implicit=implicit), part.arguments(plane_pitch))
    return lambda source, output: product(source, taps, output)


def _bound_convolution(
    part: Im2winProblem, taps: Any, plane_pitch: int | None, tuning: Mapping[str, int] | None, *, implicit: bool
) -> Callable[[Any, Any], None]:
    """Bind the high-performance kernel."""
    segments, limits = 1 if plane_pitch is not None else None, device_limits(current_device())
    launch = convolve_launch(part, implicit=implicit, segments=segments, tuning=tuning, device=limits)
    further = launch.segments - 1
    product = bound(launch, (*part.arguments(plane_pitch), *launch.extra))
    add = add_segments_launch(part.filters * part.columns, launch.segments) if further else None
    adds = None if add is None else bound(add, add.extra)

    def run(source: Any, output: Any) -> None:
        if adds is None:
            product(source, taps, output, output)  # in the workspace's place nothing is touched
            return
        workspace = empty(further * part.filters * part.columns, "float32")
        product(source, taps, output, workspace)
        adds(output, workspace)

    return run


def _bound_windows(
    part: Im2winProblem, window_bytes: int, bound_product: Callable[[Im2winProblem], Callable[[Any, Any], None]]
) -> Callable[[Any, Any], None]:
    """Bind the kernels that make a window tensor, of some images at a time, and multiply it."""
    step = part.images_per_part(window_bytes)

    @functools.cache
    def launches(images: int) -> tuple[Callable[..., None], Callable[[Any, Any], None]]:
        piece = part.with_images(images)
        return bound(transform_launch(piece), piece.arguments()), bound_product(piece)

    def run(source: Any, output: Any) -> None:
        window = empty(part.with_images(step).window_shape, "float32")
        for first in range(0, part.images, step):
            transform, product = launches(min(step, part.images - first))
            transform(source[first:] if first else source, window)
            product(window, output[first:] if first else output)

    return run
