"""What a measurement of shifts returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.decision import Decision


@dataclass(frozen=True)
class ShiftResult:
    """Shifts of a stack and what can be said about each. All arrays are NumPy arrays with one entry a frame."""

    shifts: NDArray[np.float64]
    """(T, 2) row, column in pixels to add to each frame to land on the reference; NaN where there is none."""
    score: NDArray[np.float64]
    """(T,) zero-mean normalised correlation at the peak, in [-1, 1]."""
    peak_ratio: NDArray[np.float64]
    """(T,) first peak over the strongest other local maximum inside the window's rim; inf where there is none."""
    flags: tuple[tuple[str, ...], ...]
    """Words that say what is doubtful: the words of :mod:`xcorr_app.registration.quality`."""
    fft_shifts: NDArray[np.float64]
    """(T, 2) shifts by the float64 zero-padded FFT reference; NaN where not verified."""
    difference: NDArray[np.float64]
    """(T,) distance in pixels between the two; NaN where not verified."""
    non_finite: NDArray[np.int64]
    """(T,) number of NaN or infinite pixels that were replaced for measuring."""
    window: ShiftWindow
    """Shifts that were searched."""
    engine: str
    """Name of the engine that ran."""
    reference: str
    """What the frames were compared with, in words."""
    notes: tuple[str, ...]
    """Sentences about the whole stack."""
    unreadable: dict[int, str]
    """Why a frame could not be read, by frame number."""
    sigma: NDArray[np.float64]
    """(T, 2) standard error of each shift in pixels, predicted from the image itself; NaN where there is none."""
    significance: NDArray[np.float64]
    """(T,) height of the peak above the rest of its plane, in standard deviations of that; NaN where not known."""
    decision: Decision | None = None
    """What was chosen to run and why, with the expected time of every candidate."""
