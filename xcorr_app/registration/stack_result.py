"""What is said of a series that was measured: its result, and notes on it."""

from __future__ import annotations

import numpy as np
import scipy  # whose parts are loaded when they are asked for
from numpy.typing import NDArray

from xcorr_app.registration import quality
from xcorr_app.registration.measuring import reweighted_fit
from xcorr_app.registration.nuisances import Series
from xcorr_app.registration.parts import masks, turned_frames
from xcorr_app.registration.pattern.static_pattern import PatternFit
from xcorr_app.registration.reference.reference_names import frame_number
from xcorr_app.registration.results.doubtful_frames import applied_shifts
from xcorr_app.registration.results.results import ShiftResult
from xcorr_app.registration.standard_error.peak_shapes import median_of
from xcorr_app.registration.standard_error.significance import DEVIATION


def result_of(series: Series) -> ShiftResult:
    """Columns, flags and notes."""
    measured, by, fit, settings = series.measured, series.found.by, series.pattern, series.settings
    sigma = measured.sigma if measured.shared is None else np.hypot(measured.sigma, measured.shared)
    wrong = measured.wrong(settings)
    if settings.apart:
        path = applied_shifts(
            measured.shifts, measured.trusted(settings), sigma=sigma, wrong=wrong, window=by.window.shape
        )
        sigma = np.hypot(sigma, blur(path, sigma, frame_number(series.reference, len(path)), settings.apart // 2))
    # By what these frames are best compared is known where they were measured as they are.
    is_whole = series.measurement.is_whole and not series.given.drawn and fit.joint is None
    return ShiftResult(
        shifts=measured.shifts,
        score=measured.score,
        peak_ratio=measured.peak_ratio,
        flags=measured.flags(settings),
        fft_shifts=measured.shifts + measured.check_offset,
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


def blur(path: NDArray[np.float64], sigma: NDArray[np.float64], number: int | None, reach: int) -> NDArray[np.float64]:
    """Pixels (T, 2) by which frames are off that were averaged over `reach` others on both sides, as is the reference.

    Averages lie at the mean place of their frames, which is not that of the frame in their middle. Of the path p only
    its means s over n = 2 h + 1 frames are seen. What averaging pulls them by is taken from the same average of s, and
    what they do not show from how s bends: of a path of independent steps of variance v second differences of s have
    the variance 2 v / n^2, those of white errors of frames 4 / n of the variance of s, and p is off by
    v h (h + 1) / 3 n. They bend as most of a stack does, or those nearby, whichever is more. The reference, if it is
    the frame of a `number`, is not off, and all others as it is.
    """
    mean, length, of_reference = scipy.ndimage.uniform_filter1d, 2 * reach + 1, np.arange(len(path)) == number
    own = median_of(np.nan_to_num(sigma, posinf=0.0)) ** 2 / (1 + of_reference.any())
    sums = mean(np.pad(path, ((0, 0), (0, 1)), constant_values=1.0), length, axis=0, mode="constant")
    bends = np.pad(np.diff(path, 2, axis=0) ** 2, ((1, 1), (0, 0)))[: len(path)]
    steps = np.maximum(mean(bends, 2 * length, axis=0), DEVIATION**2 * median_of(bends)) - 4 / length * own
    unseen, pull = np.maximum(steps, 0.0) * length * reach * (reach + 1) / 6, sums[:, :2] / sums[:, 2:] - path
    unseen, pull = unseen + unseen[of_reference].sum(axis=0), pull - pull[of_reference].sum(axis=0)
    return np.where(of_reference[:, None], 0.0, np.sqrt(np.maximum(pull**2 - own, 0.0) + unseen))


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
        rows, columns = max(window.dy_max, -window.dy_min), max(window.dx_max, -window.dx_min)
        notes.append(
            f"In {int(lost.sum())} of {lost.size} frames no peak is sure within {rows} rows and {columns} columns: "
            "they show something else, or little but noise, or have moved farther (--max-shift)."
        )
    return tuple(notes)
