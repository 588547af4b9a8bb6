"""Do coarse and fine parts of the scene say the same? Where they do not, shifts are less sure than either says.

A change that goes with the scene everywhere, such as the trail that a charged specimen leaves behind every bright thing
of it, bends a shift as a motion does, and leaves nothing that a standard error could be told by. But it moves coarse
structures otherwise than fine ones. So a few frames are measured again without what is coarse.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.registration.contrast_choice import Measure
from xcorr_app.registration.measuring.few_frames import spread
from xcorr_app.registration.measuring.measured import Measured
from xcorr_app.registration.reference.reference_names import frame_number
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.contrast import DEFAULT_SIGMA, Contrast
from xcorr_app.registration.stack.frames import Frames, HeldFrames, PickedFrames
from xcorr_app.registration.stack.prefilter import Prefilter

_LOOKED_AT, _FEWEST = 6, 4
_SMALLEST = 96
"""Rows and columns below which too little is fine."""
_FINE, _FINE_LOCALLY = Prefilter.parse("highpass:4"), Contrast(DEFAULT_SIGMA / 2)
_DEVIATIONS = 3.0
"""Standard errors by which the two differ, as a rule, from which it is no chance."""
_FARTHEST = 1.0
"""Pixels beyond which fine parts show something else."""


def disagreement(
    frames: Frames,
    reference: str | int | np.integer[Any],
    measured: Measured,
    settings: Settings,
    measure: Measure,
    *,
    locally: bool,
) -> NDArray[np.float64]:
    """By how many pixels (T, 2) shifts of coarse and fine parts differ, along rows and columns; zero where by chance.

    The reference is sure of itself. `locally` says that they were measured by local contrast.
    """
    nothing = np.zeros((frames.count, 2))
    number = frame_number(reference, frames.count)
    if number is None:
        return nothing
    if min(settings.measured_shape(frames.shape)) < _SMALLEST or settings.prefilter.name or settings.kernel_options:
        return nothing
    whole = measured.undoubted(settings) & ~measured.partial & ~measured.reweighted
    others = np.flatnonzero(whole & (np.arange(frames.count) != number))
    if others.size < _FEWEST or not whole[number]:
        return nothing
    few = np.union1d(number, spread(others, _LOOKED_AT))
    place, rows = int(np.searchsorted(few, number)), np.flatnonzero(few != number)
    picked = HeldFrames.of(PickedFrames(frames, tuple(few.tolist())))
    plain = replace(settings, contrast=Contrast(), smooth_time=1)
    parts = replace(plain, contrast=_FINE_LOCALLY) if locally else replace(plain, prefilter=_FINE)
    fine = measure(picked, place, parts)
    difference = (fine.shifts - measured.shifts[few] + measured.shifts[number])[rows]
    error = np.hypot(fine.sigma, measured.sigma[few])[rows]
    near = fine.undoubted(settings)[rows] & (np.abs(difference) < _FARTHEST).all(axis=1)
    if near.sum() < _FEWEST:
        return nothing
    difference, error = difference[near], error[near]
    excess = np.sqrt(np.maximum((difference**2 - error**2).mean(axis=0), 0.0))
    by = np.where(np.median(np.abs(difference) / error, axis=0) > _DEVIATIONS, excess, 0.0)
    return np.where((np.arange(frames.count) != number)[:, None], by, 0.0)
