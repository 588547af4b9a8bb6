"""One stack whose frames turn, scale or shear: measured by motion, and what its table says of that."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from xcorr_app.batch.align.correcting import check_correction, corrected, correction_of
from xcorr_app.batch.align.frames import SourceFrames, begin_stack
from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.batch.align.stack import Aligned, Turned, finish_stack, reference_of
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.runtime.select import Device
from xcorr_app.io import SeriesSpec
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.registration.motion.estimate import motion_of
from xcorr_app.registration.motion.models import angle_of, model_of, scale_of
from xcorr_app.registration.motion.result import MotionResult
from xcorr_app.registration.motion.warps import ByMatrices
from xcorr_app.registration.results import ShiftResult

_ENGINE = "gauss-newton"
_ELEMENTS = ("m00", "m01", "m02", "m10", "m11", "m12")


def align_by_motion(
    spec: SeriesSpec, options: AlignOptions, device: Device, folder: Path, resources: StackResources
) -> Callable[[], Callable[[], Aligned]]:
    """Measure one series of frames; what is returned warps them into `folder` and tells of it."""
    begun = begin_stack(spec, options, device.xp, resources)
    frames, measured = begun.frames, begun.measured
    reference = reference_of(options, frames)
    check_correction(options, frames)
    with resources.step("measure"):
        correction = correction_of(options, measured)
        result = motion_of(
            corrected(measured, correction),
            model_of(options.motion),
            reference,
            max_sigma=options.settings.max_sigma,
            progress=resources.progress,
        )
    matrices = np.round(result.applied(options.doubtful), 9)
    files = {"motion.csv": motion_csv(frames, result, matrices).encode()}
    turned = Turned(ByMatrices(matrices), files, seen_by_all(matrices, frames.shape))
    told = f"Measured as {result.model} motion; shifts are those of the middle of the frame (see motion.csv)."
    shifts = as_shifts(result, _ENGINE, told)

    def finish() -> Callable[[], Aligned]:
        written = correction if options.correct else None
        return finish_stack(spec, options, folder, resources, frames, measured, shifts, turned, written)

    return finish


def as_shifts(result: MotionResult, engine: str, told: str) -> ShiftResult:
    """What is known of the frames as of shifts: those of their middles."""
    count = len(result.flags)
    nothing = np.full(count, np.nan)
    reach = tuple(size // 2 for size in result.shape)
    return ShiftResult(
        shifts=result.shifts,
        score=result.score,
        peak_ratio=nothing,
        flags=result.flags,
        fft_shifts=np.full((count, 2), np.nan),
        difference=nothing,
        non_finite=np.array([int("non-finite" in flags) for flags in result.flags]),
        window=ShiftWindow.symmetric(reach[0], reach[1]),
        engine=engine,
        reference=result.reference,
        notes=(told, *result.notes),
        unreadable=result.unreadable,
        sigma=result.sigma,
        significance=nothing,
        tiles=np.full((count, 0, 0), np.nan, np.float32),
    )


def motion_csv(frames: SourceFrames, result: MotionResult, applied: NDArray[np.float64]) -> str:
    """A line for each frame: what was measured, and the matrix that is applied, which ``xcorr apply`` reads.

    The matrix takes a place (row, column, 1) of the reference to the place in the frame; its third row is 0, 0, 1.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    measured = ("angle", "scale", "score", "overlap", "sigma_angle")
    writer.writerow(["frame", "source", "page", *measured, "flags", "applied_angle", "applied_scale", *_ELEMENTS])
    angle, scale = result.angle, result.scale
    applied_angle, applied_scale = angle_of(applied), scale_of(applied)
    for t, flags in enumerate(result.flags):
        name, page = frames.origin(t)
        numbers = (angle[t], scale[t], result.score[t], result.overlap[t], result.sigma_angle[t])
        elements = [f"{value:.9f}" if np.isfinite(value) else "" for value in applied[t, :2].ravel()]
        turned = map(_shown, (applied_angle[t], applied_scale[t]))
        writer.writerow([t, name, page, *map(_shown, numbers), "|".join(flags), *turned, *elements])
    return text.getvalue().encode("utf-8", "backslashreplace").decode("utf-8")


def seen_by_all(matrices: NDArray[np.float64], shape: tuple[int, int]) -> tuple[slice, slice]:
    """The largest part of the reference, of its shape and about its middle, that every frame shows."""
    half = (np.array(shape) - 1) / 2
    kept = matrices[np.isfinite(matrices).all(axis=(1, 2))]
    for share in np.arange(1.0, 0.04, -0.02):
        corners = np.array([[*(half * (1 + share * np.array([y, x]))), 1.0] for y in (-1, 1) for x in (-1, 1)])
        places = np.einsum("tij,cj->tci", kept, corners)[..., :2]
        if ((places >= -1e-3) & (places <= np.array(shape) - 1 + 1e-3)).all():
            break
    first = np.ceil(half - share * half).astype(int)
    last = np.floor(half + share * half).astype(int)
    return slice(int(first[0]), int(last[0]) + 1), slice(int(first[1]), int(last[1]) + 1)


def _shown(value: float) -> str:
    return f"{value:.6f}" if np.isfinite(value) else ""
