"""What is said of a series that was measured: its result, and notes on it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.registration import quality
from xcorr_app.registration.measuring import reweighted_fit
from xcorr_app.registration.nuisances import Series
from xcorr_app.registration.parts import masks, turned_frames
from xcorr_app.registration.pattern.static_pattern import PatternFit
from xcorr_app.registration.reference.reference_names import frame_number
from xcorr_app.registration.results.results import ShiftResult
from xcorr_app.registration.standard_error.blur import blur


def result_of(series: Series) -> ShiftResult:
    """Columns, flags and notes."""
    measured, by, fit = series.measured, series.found.by, series.pattern
    settings, number = series.settings, frame_number(series.reference, len(measured.sigma))
    moved = blur(measured.shifts, measured.sigma, measured.trusted(settings), number, settings.apart // 2)
    sigma = np.hypot(np.hypot(measured.sigma, 0.0 if measured.shared is None else measured.shared), moved)
    wrong = measured.wrong(settings)
    # By what these frames are best compared is known where they were measured as they are.
    is_whole = series.measurement.is_whole and not series.given.drawn and fit.joint is None
    return ShiftResult(
        shifts=measured.shifts,
        score=measured.score,
        peak_ratio=measured.peak_ratio,
        flags=measured.flags(settings),
        fft_shifts=measured.fft_shifts,
        difference=np.hypot(*(measured.shifts - measured.fft_shifts).T),
        non_finite=measured.non_finite,
        window=by.window,
        engine=by.engine,
        reference=series.found.described,
        notes=_notes(series),
        unreadable=measured.reasons,
        decision=by.decision,
        sigma=quality.honest_errors(sigma, wrong),
        significance=measured.significance,
        closure=measured.closure,
        wrong=wrong,
        tiles=measured.tiles,
        contrast=by.settings.contrast if is_whole and series.frames is series.given.frames else None,
        defects=series.given.defects,
        left_out=bool(series.given.notes) or fit != PatternFit() or series.frames is not series.given.frames,
    )


def _notes(series: Series) -> tuple[str, ...]:
    measured, settings, window = series.measured, series.settings, series.found.by.window
    notes = [*series.found.notes, *series.pattern.notes, *series.notes, *series.given.notes]
    if measured.linear is not None:
        notes.append(turned_frames.note(measured.linear, settings.measured_shape(series.frames.shape)))
    if measured.partial.any():
        notes.append(masks.note(measured.partial, measured.tiles))
    if measured.reweighted.any():
        notes.append(reweighted_fit.note(measured.reweighted))
    counts = series.measurement.frames_measured
    if notes and sum(counts) > 2 * counts[0]:
        notes.append(f"This took {sum(counts) / counts[0]:.1f} measurements of all frames; shifts alone take one.")
    if (lost := measured.lost(settings)).any() and measured.trusted(settings).sum() > 1:
        notes.append(_lost_note(lost, window))
    return tuple(notes)


def _lost_note(lost: NDArray[np.bool_], window: ShiftWindow) -> str:
    """Say what may have become of frames (T,) that nothing in the window stands for."""
    rows, columns = max(window.dy_max, -window.dy_min), max(window.dx_max, -window.dx_min)
    return (
        f"In {int(lost.sum())} of {lost.size} frames no peak is sure within {rows} rows and {columns} columns: they "
        "show something else, or little but noise, or have moved farther (--max-shift)."
    )
