"""More than shifts: a stack measured by motions of whole frames or by patches, and what its tables say of that."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.batch.align.frames import SourceFrames, corrected, correction_of, reference_of
from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.registration.correction import Correction
from xcorr_app.registration.motion.result import MotionResult
from xcorr_app.registration.motion.series import motion_against
from xcorr_app.registration.patches.patches import patches_of
from xcorr_app.registration.results.frame_table import csv_text
from xcorr_app.registration.results.results import ShiftResult
from xcorr_app.registration.solver.basis import PATCHES, basis_of
from xcorr_app.registration.warping.field import Field
from xcorr_app.registration.warping.matrices import angle_of, scale_of
from xcorr_app.registration.warping.warp import Warp, by_fields, by_matrices
from xcorr_app.report.records import Bends


@dataclass(frozen=True)
class StackWarp:
    """What is known of a stack whose frames are not only shifted."""

    warp: Warp
    files: dict[str, bytes]
    """Content of the files that tell of it, by name."""
    back: Warp | None = None
    """Warps what the reference shows to where the frames have it, where that is known."""
    bends: Bends | None = None
    """What the report shows of frames whose parts move otherwise."""
    turns: tuple[tuple[float, float], ...] | None = None
    """Angle in degrees and scale of each frame."""


@dataclass(frozen=True)
class Registration:
    """Of a stack."""

    result: ShiftResult
    correction: Correction | None
    """By which frames were corrected."""
    warped: StackWarp | None = None


def _measured(
    measure: Callable[..., MotionResult], frames: SourceFrames, options: AlignOptions, resources: StackResources
) -> tuple[MotionResult, Correction | None]:
    """Measure frames, corrected as asked, against the reference."""
    reference: Any = reference_of(options, frames)
    correction = correction_of(options, frames.frames)
    there = corrected(frames.frames, correction)
    return measure(there, reference=reference, progress=resources.progress), correction


def frames_csv(
    frames: SourceFrames,
    flags: Sequence[tuple[str, ...]],
    columns: Mapping[str, NDArray[np.float64]],
    exact: Mapping[str, NDArray[np.float64]] | None = None,
) -> bytes:
    """A table with a line for each frame, beside that of shifts: numbers with six decimals, `exact` ones with nine."""
    named = [(name, 6, values) for name, values in columns.items()]
    named += [(name, 9, values) for name, values in (exact or {}).items()]
    cells = [[f"{value:.{places}f}" if np.isfinite(value) else "" for value in values] for _, places, values in named]
    head = ["frame", "source", "page", *(name for name, _, _ in named), "flags"]
    lines = zip(frames.origins(), *cells, map("|".join, flags), strict=True)
    return csv_text(head, ([t, *origin, *rest] for t, (origin, *rest) in enumerate(lines))).encode()


def as_shifts(result: MotionResult, engine: str, note: str, window: ShiftWindow) -> ShiftResult:
    """What is known of the frames as of shifts: those of their middles, searched in `window`."""
    count = len(result.flags)
    nothing = np.full(count, np.nan)
    return ShiftResult(
        shifts=result.shifts,
        score=result.score,
        peak_ratio=nothing,
        flags=result.flags,
        fft_shifts=np.full((count, 2), np.nan),
        non_finite=np.array([int("non-finite" in flags) for flags in result.flags]),
        window=window,
        engine=engine,
        reference=result.reference,
        notes=(note, *result.notes),
        unreadable=result.unreadable,
        sigma=result.sigma,
        significance=nothing,
        tiles=np.full((count, 0, 0), np.nan, np.float32),
    )


_ENGINE = "gauss-newton"


def measured_by_motion(frames: SourceFrames, options: AlignOptions, resources: StackResources) -> Registration:
    """Measure motions of whole frames."""
    how: Any = {"max_sigma": options.settings.sure_sigma, "masks": options.settings.masks}
    measure = partial(motion_against, basis=basis_of(options.model), **how)
    result, correction = _measured(measure, frames, options, resources)
    applied, shape = result.applied(options.policy), frames.shape
    matrices = np.round(applied, 9)
    note = f"Measured as {result.model} motion; shifts are those of the middle of the frame (see motion.csv)."
    turns = tuple(zip(result.angle.tolist(), result.scale.tolist(), strict=True))
    reach = ShiftWindow.symmetric(*(size // 2 for size in shape))  # what is tried of each rotation
    # Doubtful frames are moved by what their matrices say, of which the table has the shifts.
    return Registration(
        replace(as_shifts(result, _ENGINE, note, reach), read_applied=replace(result, matrices=applied).shifts),
        correction,
        warped=StackWarp(
            by_matrices(matrices),
            {"motion.csv": motion_csv(frames, result, matrices)},
            by_matrices(np.linalg.inv(matrices).astype(np.float64)),
            turns=turns,
        ),
    )


def motion_csv(frames: SourceFrames, result: MotionResult, applied: NDArray[np.float64]) -> bytes:
    """A line for each frame: what was measured, and the matrix that is applied, which ``xcorr apply`` reads.

    The matrix takes a place (row, column, 1) of the reference to the place in the frame; its third row is 0, 0, 1.
    """
    measured = {name: getattr(result, name) for name in ("angle", "scale", "score", "overlap", "sigma_angle")}
    measured |= {"applied_angle": angle_of(applied), "applied_scale": scale_of(applied)}
    elements = {f"m{row}{column}": applied[:, row, column] for row in range(2) for column in range(3)}
    return frames_csv(frames, result.flags, measured, elements)


_NOTE = (
    "Measured by patches; shifts are the means of each frame's field (see patches.csv for its size, motion.npz for the "
    "field)."
)


def measured_by_patches(frames: SourceFrames, options: AlignOptions, resources: StackResources) -> Registration:
    """Measure the shifts of patches."""
    settings, shape = options.settings, frames.shape
    measure = partial(patches_of, options=options.patches, max_sigma=settings.sure_sigma, max_shift=settings.max_shift)
    result, correction = _measured(measure, frames, options, resources)
    field = result.field
    assert field is not None  # noqa: S101 - patches always have one
    applied = field.applied(result.trusted, options.policy)
    # What is moved later by this file moves as this stack does.
    kept = replace(result, doubtful=options.policy)
    files = {"motion.npz": kept.archive(), "patches.csv": _frames_csv(frames, result, field)}
    warp = by_fields(applied, (field.rows, field.columns))
    warped = StackWarp(warp, files, bends=_bends(field, result.trusted))
    return Registration(as_shifts(result, PATCHES, _NOTE, settings.window(shape)), correction, warped=warped)


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
