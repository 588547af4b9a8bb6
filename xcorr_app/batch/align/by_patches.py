"""One stack whose parts move otherwise: measured by patches, and what its files say of that."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from xcorr_app.batch.align.frames import SourceFrames
from xcorr_app.batch.align.measured import Measured, Warped, as_shifts, frames_csv, measured_by
from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.pipeline.planes import Begun
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.registration.motion.result import MotionResult
from xcorr_app.registration.motion.result_file import content_of
from xcorr_app.registration.patches.patches import patches_of
from xcorr_app.registration.results.results import ShiftResult
from xcorr_app.registration.warping.field import Field
from xcorr_app.registration.warping.warp import ByFields
from xcorr_app.report.records import Bends

FILES = ("motion.npz", "patches.csv")
"""In the folder of a stack's results."""
ENGINE = "patches"
_TOLD = (
    "Measured by patches; shifts are the means of each frame's field (see patches.csv for its size, motion.npz for the "
    "field)."
)


def measured_by_patches(begun: Begun[SourceFrames], options: AlignOptions, resources: StackResources) -> Measured:
    """Measure the shifts of patches."""

    def tell(frames: SourceFrames, result: MotionResult) -> tuple[Warped, ShiftResult]:
        field = result.field
        assert field is not None  # noqa: S101 - patches always have one
        applied = field.applied(result.trusted, options.policy)
        # What is moved later by this file moves as this stack does.
        kept = replace(result, doubtful=options.policy)
        files = {"motion.npz": content_of(kept), "patches.csv": _frames_csv(frames, result, field)}
        warp = ByFields(applied, field.rows, field.columns)
        warped = Warped(warp, files, _seen_by_all(applied, frames.shape), _bends(field, result.trusted))
        return warped, as_shifts(result, ENGINE, _TOLD, settings.window(frames.shape))

    settings = options.settings
    measure = partial(patches_of, options=options.patches, max_sigma=settings.sure_sigma, max_shift=settings.max_shift)
    return measured_by(measure, tell, begun, options, resources)


def _frames_csv(frames: SourceFrames, result: MotionResult, field: Field) -> bytes:
    """A line for each frame: how much its parts differ from its mean shift, and how well they are known."""
    away = np.hypot(*np.moveaxis(_from_mean(field), 3, 0)).reshape(len(result.flags), -1)
    spread = field.sigma.reshape(len(away), -1)
    columns = {
        "score": result.score,
        "overlap": result.overlap,
        "trusted_patches": field.trusted.reshape(len(away), -1).mean(axis=1),
        "rms_bend": np.sqrt((away**2).mean(axis=1)),
        "max_bend": away.max(axis=1),
        "median_sigma": np.median(spread, axis=1),
        "max_sigma": spread.max(axis=1),
        "median_significance": _median_known(field.significance.reshape(len(away), -1)),
    }
    return frames_csv(frames, result.flags, columns)


def _from_mean(field: Field) -> NDArray[np.float64]:
    """Shifts (T, gy, gx, 2) less the mean of their frame."""
    away: NDArray[np.float64] = field.shifts - field.shifts.mean(axis=(1, 2), keepdims=True)
    return away


def _median_known(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Median of each row without its NaN; NaN where there is nothing else."""
    known = np.isfinite(values)
    return np.array([np.median(row[ok]) if ok.any() else np.nan for row, ok in zip(values, known, strict=True)])


def _bends(field: Field, trusted: NDArray[np.bool_]) -> Bends | None:
    """What the report draws; None where no frame is to be trusted."""
    if not trusted.any():
        return None
    away = _from_mean(field)
    size = np.hypot(away[..., 0], away[..., 1])
    most = int(np.where(trusted, np.square(size).mean(axis=(1, 2)), -1.0).argmax())
    return Bends(
        rows=tuple(field.rows.tolist()),
        columns=tuple(field.columns.tolist()),
        frame=most,
        arrows=tuple(tuple((float(dy), float(dx)) for dy, dx in line) for line in away[most].round(4)),
        size=tuple(map(tuple, np.median(size[trusted], axis=0).round(4).tolist())),
    )


def _seen_by_all(shifts: NDArray[np.float64], shape: tuple[int, int]) -> tuple[slice, slice]:
    """A part of the reference that every frame shows; the middle where there is none."""
    kept = shifts[np.isfinite(shifts).all(axis=(1, 2, 3))]
    parts = []
    for axis, size in enumerate(shape):
        along = kept[..., axis] if len(kept) else np.zeros(1)
        first, last = int(np.ceil(max(along.max(), 0.0))), size - int(np.ceil(max(-along.min(), 0.0)))
        parts.append(slice(first, last) if last - first > 1 else slice(size // 2, size // 2 + 1))
    return parts[0], parts[1]
