"""Taps of low rank on the device: a stack and terms in, filtered stack out, one read and one write."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xcorr_app.gpu.runtime.arrays import dense
from xcorr_app.gpu.runtime.binder import BoundLaunch, BoundPart, as_struct
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.stencil.reuse_run import over_parts
from xcorr_app.gpu.stencil.separable import (
    SeparableProblem,
    Vector,
    fits_one_pass,
    never_clips,
    separable_launch,
    terms_argument,
)
from xcorr_app.gpu.stencil.separable_passes import two_passes

Terms = tuple[tuple[Vector, Vector], ...]
"""Columns and rows."""


def prepare_separable(
    problem: SeparableProblem,
    terms: Terms,
    *,
    image_type: str,
    result_type: str,
    outside: float = 0.0,
    kernel: str = "separable",
) -> Callable[[Any, Any, Any], None]:
    """Choose and compile for the current device, so that every further call costs a launch.

    What is returned takes images, result, and where clipped pixels are counted or None. ``"two_passes"`` is taken if it
    is asked for, and for taps too long for one.
    """
    if kernel == "two_passes" or not fits_one_pass(problem.filter_shape, image_type):
        return lambda images, out, clipped: two_passes(dense(images), terms, problem, outside, out, clipped)
    value = outside if problem.boundary == "constant" else None
    values = as_struct(terms_argument(terms, value or 0.0, image_type))
    clips = not never_clips(terms, image_type, result_type, value)
    parts = _bound_parts(current_device(), problem, image_type, result_type, clips)
    return over_parts(problem, parts, values)


@functools.lru_cache(maxsize=256)
def _bound_parts(
    device: int,
    problem: SeparableProblem,
    image_type: str,
    result_type: str,
    clips: bool,
) -> tuple[BoundPart, ...]:
    """Choose and compile once for a problem: that takes longer than a launch."""
    options: dict[str, Any] = {"image_type": image_type, "result_type": result_type, "clips": clips}
    limits = device_limits(device)
    launches = ((image, separable_launch(part, **options, device=limits)) for image, part in problem.parts())
    return tuple(BoundPart(image, BoundLaunch.of(launch, launch.extra)) for image, launch in launches)
