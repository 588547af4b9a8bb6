"""Each domain's one choice, asked with what a command knows of a stack: what runs, and why.

What banks and channels need is loaded where it is asked: `xcorr align` starts without it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from xcorr_app.correlation.engines import limits_of
from xcorr_app.decision import Decision
from xcorr_app.filtering.choice import decide_filter as choose_filter
from xcorr_app.filtering.kernel_names import kernel_name, mixing_name
from xcorr_app.filtering.request import checked_request
from xcorr_app.gpu.runtime.limits import DeviceLimits, limits_by_name
from xcorr_app.registration.choice import decide_registration
from xcorr_app.registration.stack.passes import Pass

if TYPE_CHECKING:
    from xcorr_app.batch.align.frames import SourceFrames
    from xcorr_app.batch.align.options import AlignOptions
    from xcorr_app.batch.filter.options import FilterOptions
    from xcorr_app.batch.unmix.stack import UnmixPlan
    from xcorr_app.io import StackMetadata

_OF_ONE_IMAGE = ("first", "last")
"""References by name that all frames share; a mean, say, leaves out the frame that is measured."""


def limits_for(options: Any, xp: Any) -> DeviceLimits | None:
    """Limits of the device that ``--explain-for`` names, else of the one that computes; None is the CPU."""
    return limits_by_name(options.explain_for) if options.explain_for else limits_of(xp)


def decide_align(frames: SourceFrames, options: AlignOptions) -> Decision:
    """What compares the frames of a stack with their reference, as long as no weighting of frequencies is needed."""
    rows, columns = frames.shape
    limits = limits_for(options, frames.xp)
    together = Pass(frames.count, rows * columns, on_device=limits is not None).images_at_once
    shared = not isinstance(options.reference, str) or options.reference in _OF_ONE_IMAGE
    return decide_registration(
        frames.shape, str(frames.dtype), together, options.settings, limits, shared_reference=shared
    )


def decide_filter(metadata: StackMetadata, options: FilterOptions, xp: Any) -> Decision:
    """What filters the planes of a stack."""
    rows, columns = metadata.shape[-2:]
    bank, limits = options.choice.bank, limits_for(options, xp)
    pixels = rows * columns * (1 if bank is None else len(bank.filters))
    together = Pass(metadata.planes, pixels, on_device=limits is not None).images_at_once
    if bank is not None:
        from xcorr_app.filtering.array_choice import decide_bank
        from xcorr_app.gpu.im2win.options import kernel_and_macros

        count, height, width = bank.filters.shape
        images, filters = (together, 1, rows, columns), (count, 1, height, width)
        how_cut: Any = (options.mode, options.stride, kernel_and_macros(options.asked_kernel)[0])
        return decide_bank(images, metadata.dtype, filters, limits, *how_cut)
    shape, taps = (together, rows, columns), options.choice.taps
    how: Any = {name: getattr(options, name) for name in ("mode", "cval", "engine")}
    how["dtype"] = options.result_type(metadata.dtype)
    request = checked_request(shape, metadata.dtype, taps, origin=0, flip=True, **how)
    named = kernel_name(options.asked_kernel)
    return choose_filter(request, taps, shape, metadata.dtype, limits, options.engine, named=named)


def decide_unmix(plan: UnmixPlan, limits: DeviceLimits | None) -> Decision:
    """What mixes the channels of one place of a stack on a device of such limits; None is the CPU."""
    from xcorr_app.filtering.array_choice import decide_mixing

    source, target, matrix = plan.stack.metadata.dtype, plan.metadata.dtype, plan.matrix
    pixels = math.prod(plan.metadata.shape[-2:])
    how: Any = {
        "density": plan.options.by_density,
        "clip": plan.options.clip,
        "named": mixing_name(plan.options.asked_kernel),
    }
    return decide_mixing(source, target, matrix.shape, 1, pixels, limits, **how)
