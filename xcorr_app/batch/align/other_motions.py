"""What is the same for all stacks whose frames do more than shift, whatever they are measured by."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from xcorr_app.batch.align.flat_and_dark import check_correction, corrected, correction_of
from xcorr_app.batch.align.frames import SourceFrames, begin_stack
from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.batch.align.stack import Aligned, Turned, finish_stack, reference_of
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.runtime.select import Device
from xcorr_app.io import SeriesSpec
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.registration.motion.result import MotionResult
from xcorr_app.registration.results.results import ShiftResult

Measure = Callable[..., MotionResult]
"""From frames, a `reference` and `progress`."""
Tell = Callable[[SourceFrames, MotionResult], tuple[Turned, ShiftResult]]
"""How the frames are warped and what is written of that; and the same as shifts."""


def align_measured(
    measure: Measure,
    tell: Tell,
    spec: SeriesSpec,
    options: AlignOptions,
    device: Device,
    folder: Path,
    resources: StackResources,
) -> Aligned:
    """Measure one series of frames, warp them into `folder` and tell of it."""
    begun = begin_stack(spec, options, device.xp, resources)
    frames, measured = begun.frames, begun.measured
    reference: Any = reference_of(options, frames)
    check_correction(options, frames)
    with resources.step("measure"):
        correction = correction_of(options, measured)
        result = measure(corrected(measured, correction), reference=reference, progress=resources.progress)
    turned, shifts = tell(frames, result)
    written = correction if options.correct else None
    return finish_stack(spec, options, folder, resources, frames, measured, shifts, turned, written)


def as_shifts(result: MotionResult, engine: str, told: str, window: ShiftWindow) -> ShiftResult:
    """What is known of the frames as of shifts: those of their middles, searched in `window`."""
    count = len(result.flags)
    nothing = np.full(count, np.nan)
    return ShiftResult(
        shifts=result.shifts,
        score=result.score,
        peak_ratio=nothing,
        flags=result.flags,
        fft_shifts=np.full((count, 2), np.nan),
        difference=nothing,
        non_finite=np.array([int("non-finite" in flags) for flags in result.flags]),
        window=window,
        engine=engine,
        reference=result.reference,
        notes=(told, *result.notes),
        unreadable=result.unreadable,
        sigma=result.sigma,
        significance=nothing,
        tiles=np.full((count, 0, 0), np.nan, np.float32),
    )
