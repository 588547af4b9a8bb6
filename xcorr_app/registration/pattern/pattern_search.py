"""Whether something stands still while a scene moves, and what moves where frames are led by what stands still."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.measuring.measured import Trial
from xcorr_app.registration.model.two_layers import TwoLayers
from xcorr_app.registration.pattern.one_layer import Residual, left_over
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import ArrayFrames
from xcorr_app.registration.standard_error.significance import MAX_FALSE_ALARM

BINNED_FROM = 384
"""Rows and columns from which a part of the rows, or bins of pixels, are enough for a first look."""
_MIN_MOTION = 3.0
"""Pixels by which the scene moves at least."""
_MIN_SHARE = 0.004
"""Of the variance that aligned frames share, which a pattern has at least; less bends nothing."""
_DEVIATIONS, _OF_REST = 6.0, 0.15
"""Standard errors of that, and share of all that such frames leave: of what moves or changes, less comes back."""
_MAX_ITERATIONS = 4
_CONVERGED = 0.3
"""Change of the shifts, in pixels, from which the likelihood of both layers finds the rest."""


def moves(shifts: NDArray[np.float64]) -> bool:
    """Whether shifts (n, 2) are those of a scene that moves far enough."""
    return float(np.ptp(shifts, axis=0).max()) >= _MIN_MOTION


def stands_still(found: Residual) -> bool:
    """Whether frames share something where they are."""
    return max(_MIN_SHARE, _DEVIATIONS * found.static_chance, _OF_REST * found.share) < found.static < np.inf


def in_turns(
    stack: Array, shifts: NDArray[np.float64], settings: Settings, measure: Trial
) -> NDArray[np.float64] | None:
    """Shifts (n, 2) of the scene of float frames (n, h, w) to half a pixel, from shifts to begin with."""
    for _ in range(_MAX_ITERATIONS):
        scene = ArrayFrames(stack - TwoLayers(stack, shifts).pattern)
        found = measure(scene, "first", settings, whole=True, tiles=False)
        chance = (found.false_alarm[1:] > MAX_FALSE_ALARM) | ~(found.sigma[1:] <= settings.sure_sigma).all(axis=1)
        if not np.isfinite(found.shifts).all() or 2 * chance.sum() >= chance.size:
            return None
        step, shifts = np.abs(found.shifts - (shifts - shifts[0])).max(), found.shifts
        if step < _CONVERGED:
            break
        if not stands_still(left_over(stack, shifts)):
            return None
    return shifts
