"""Each domain's one choice, asked with what a command knows of a stack: what runs, and why."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from xcorr_app.batch.correlate.operands import blocks
from xcorr_app.decision import Decision
from xcorr_app.filtering.request import checked_request
from xcorr_app.gpu.runtime.limits import DeviceLimits, device_limits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.registration.passes import Pass

if TYPE_CHECKING:
    from xcorr_app.batch.align.frames import SourceFrames
    from xcorr_app.batch.align.options import AlignOptions
    from xcorr_app.batch.correlate.plan import CorrelationPlan
    from xcorr_app.batch.filter.options import FilterOptions
    from xcorr_app.batch.unmix.stack import UnmixPlan
    from xcorr_app.io import StackMetadata

_OF_ONE_IMAGE = ("first", "last")
"""References by name that all frames share; a mean, say, leaves out the frame that is measured."""


def decide_align(frames: SourceFrames, options: AlignOptions) -> Decision:
    """What compares the frames of a stack with their reference, as long as no weighting of frequencies is needed."""
    rows, columns = frames.shape
    together = Pass(frames.count, rows * columns, on_device=frames.xp is not np).images_at_once
    shared = not isinstance(options.reference, str) or options.reference in _OF_ONE_IMAGE
    limits = limits_of(frames.xp)
    ask = _choice("registration.choice", "decide_registration")
    return ask(frames.shape, str(frames.dtype), together, options.settings, limits, shared_reference=shared)


def decide_filter(metadata: StackMetadata, options: FilterOptions, xp: Any) -> Decision:
    """What filters the planes of a stack."""
    rows, columns = metadata.shape[-2:]
    bank, limits = options.choice.bank, limits_of(xp)
    pixels = rows * columns * (1 if bank is None else len(bank.filters))
    together = Pass(metadata.planes, pixels, on_device=xp is not np).images_at_once
    if bank is not None:
        count, height, width = bank.filters.shape
        images, filters = (together, 1, rows, columns), (count, 1, height, width)
        return _choice("filtering.array_choice", "decide_bank")(images, metadata.dtype, filters, limits, options.mode)
    shape, taps = (together, rows, columns), options.choice.taps
    how: Any = {name: getattr(options, name) for name in ("mode", "cval", "dtype", "engine")}
    request = checked_request(shape, metadata.dtype, taps, origin=0, flip=True, **how)
    ask = _choice("filtering.choice", "decide_filter")
    return ask(request, taps, shape, metadata.dtype, limits, options.engine)


def decide_unmix(plan: UnmixPlan, limits: DeviceLimits | None) -> Decision:
    """What mixes the channels of one place of a stack on a device of such limits; None is the CPU."""
    source, target, matrix = plan.stack.metadata.dtype, plan.metadata.dtype, plan.matrix
    pixels = math.prod(plan.metadata.shape[-2:])
    how = {"density": plan.options.by_density, "clip": plan.options.clip}
    return _choice("filtering.array_choice", "decide_mixing")(source, target, matrix.shape, 1, pixels, limits, **how)


def decide_correlate(plan: CorrelationPlan) -> Decision:
    """What makes the planes of a block of pairs of images."""
    settings = plan.options.settings
    if settings.normalization == "phase":
        return Decision("fft", reason="phase correlation exists only there")
    lefts, rights = next(blocks(plan.left_shape, plan.right_shape, plan.pairs_at_once))
    left_count, per_left = (part.stop - part.start for part in (lefts, rights[-1]))
    right_count = per_left * (left_count if len(rights) > 1 else 1)
    sizes = plan.left_shape[-2:], plan.right_shape[-2:]
    problem = _later("correlation.problem", "problem_of")(*sizes, plan.window, left_count, right_count, per_left)
    types = plan.left.dtype, plan.right.dtype, plan.dtype
    dtypes = _later("correlation.arrangement", "engine_dtypes")(*types, settings.normalization)
    how = {"engine": settings.engine, "options": settings.kernel_options}
    return _choice("correlation.choice", "decide_planes")(
        problem, dtypes=dtypes, limits=limits_of(plan.device.xp), **how
    )


def limits_of(xp: Any) -> DeviceLimits | None:
    """Limits of the current device for CuPy; None for NumPy, which is the CPU."""
    return None if xp is np else device_limits(current_device())


def _choice(module: str, name: str) -> Callable[..., Decision]:
    choice: Callable[..., Decision] = _later(module, name, Decision("auto", reason="decided when it runs"))
    return choice


def _later(module: str, name: str, otherwise: Any = None) -> Any:
    """Function of a domain, or one that returns `otherwise` where the domain does not have it."""
    try:
        return getattr(importlib.import_module(f"xcorr_app.{module}"), name)
    except (ImportError, AttributeError):
        return lambda *_, **__: otherwise
