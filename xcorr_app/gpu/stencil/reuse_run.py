"""Filters on the device: stack in, filtered stack out, through one of the filter kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.gpu.runtime.binder import BoundLaunch, BoundPart, as_struct, null_pointer
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.stencil.problem import FilterProblem, stays_in_range, taps_argument
from xcorr_app.gpu.stencil.reuse import filter_launch, filter_parts


def prepare_filter(
    problem: FilterProblem,
    taps: npt.ArrayLike,
    *,
    image_type: str,
    result_type: str,
    outside: float = 0.0,
    kernel: str = "auto",
    double_sums: bool = False,
    tuning: Mapping[str, int] | None = None,
) -> Callable[[Any, Any, Any], None]:
    """Choose and compile for the current device, so that every further call costs a launch.

    What is returned takes images, dense result, and where clipped pixels are counted or None.
    """
    macros = tuple(sorted((tuning or {}).items()))
    weights, value = np.asarray(taps, np.float64), outside if problem.boundary == "constant" else None
    clips = not stays_in_range(float(weights.min()), float(weights.sum()), image_type, result_type, value)
    parts = _bound_parts(current_device(), problem, kernel, image_type, result_type, double_sums, clips, macros)
    values = as_struct(taps_argument(taps, outside, image_type, double_sums=double_sums))
    return over_parts(problem, parts, values, alignment=16)


def over_parts(
    problem: FilterProblem, parts: tuple[BoundPart, ...], values: Any, *, alignment: int = 1
) -> Callable[[Any, Any, Any], None]:
    """Return what starts the launches of all parts; images that are not dense and aligned are copied first."""
    uncounted = null_pointer()

    def run(images: Any, out: Any, clipped: Any) -> None:
        if not images.flags.c_contiguous or _address(images) % alignment:
            images = images.copy()
        count = uncounted if clipped is None else clipped
        if len(parts) > 1:
            images, out = images.reshape(-1, *problem.image_shape), out.reshape(-1, *problem.result_shape)
        for first, launch in parts:
            arrays = (images[first:], out[first:]) if first else (images, out)
            launch(*arrays, count, values)

    return run


@functools.lru_cache(maxsize=256)
def _bound_parts(
    device: int,
    problem: FilterProblem,
    kernel: str,
    image_type: str,
    result_type: str,
    double_sums: bool,
    clips: bool,
    macros: tuple[tuple[str, int], ...],
) -> tuple[BoundPart, ...]:
    """Choose and compile once for a problem: that takes longer than a launch."""
    options: dict[str, Any] = {
        "image_type": image_type,
        "result_type": result_type,
        "double_sums": double_sums,
        "clips": clips,
        "tuning": dict(macros),
        "device": device_limits(device),
    }
    chosen = filter_launch(problem, kernel, **options).entry
    launches = ((image, filter_launch(part, chosen, **options)) for image, part in filter_parts(problem, chosen))
    return tuple(BoundPart(image, BoundLaunch.of(launch, launch.extra)) for image, launch in launches)


def _address(images: Any) -> int:
    return int(images.data.ptr)
