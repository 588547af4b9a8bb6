"""What is measured of a stack, in whatever way: its shifts, and how its frames are warped where these are not all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.batch.align.frames import SourceFrames
from xcorr_app.batch.align.named_images import corrected, correction_of, reference_of
from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.pipeline.planes import Begun
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.registration.correction import Correction
from xcorr_app.registration.motion.result import MotionResult
from xcorr_app.registration.results.frame_table import csv_text
from xcorr_app.registration.results.results import ShiftResult
from xcorr_app.registration.warping.warp import Warp
from xcorr_app.report.records import Bends


@dataclass(frozen=True)
class Warped:
    """What is known of a stack whose frames are not only shifted."""

    warp: Warp
    files: dict[str, bytes]
    """Content of the files that tell of it, by name."""
    seen: tuple[slice, slice]
    """Part of the reference that every frame shows."""
    bends: Bends | None = None
    """What the report shows of frames whose parts move otherwise."""
    turns: tuple[tuple[float, float], ...] | None = None
    """Angle in degrees and scale of each frame."""


@dataclass(frozen=True)
class Measured:
    """Of a stack."""

    result: ShiftResult
    correction: Correction | None
    """By which frames were corrected."""
    advice: str | None = None
    """What to try where the result is doubtful."""
    warped: Warped | None = None


def measured_by(
    measure: Callable[..., MotionResult],
    tell: Callable[[SourceFrames, MotionResult], tuple[Warped, ShiftResult]],
    begun: Begun[SourceFrames],
    options: AlignOptions,
    resources: StackResources,
) -> Measured:
    """Measure more than shifts, from frames, a `reference` and `progress`; `tell` says the same as shifts, too."""
    reference: Any = reference_of(options, begun.host)
    correction = correction_of(options, begun.there)
    found = measure(corrected(begun.there, correction), reference=reference, progress=resources.progress)
    warped, shifts = tell(begun.host, found)
    return Measured(shifts, correction, warped=warped)


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
