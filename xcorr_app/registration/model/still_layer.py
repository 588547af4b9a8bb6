"""Shifts of all frames of a series over a layer that stands still, which was found by some of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from xcorr_app.registration.measuring.measured import ShiftColumns, taken
from xcorr_app.registration.model.two_layers import TwoLayers
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import Frames

_AT_ONCE = 16
_ROUNDING = 1e-4
"""Pixels that the shift of the reference itself may be off zero."""
_SAME_PEAK, _DEVIATIONS = 0.5, 4.0
"""Pixels, and standard errors, up to which both find the same peak: a frame that shows something else has none here."""


@dataclass(frozen=True)
class StillLayer:
    """Both layers, and the frames that they were found by."""

    layers: TwoLayers
    numbers: NDArray[np.intp]
    sigma: NDArray[np.float64]
    """(n, 2) standard errors of their shifts."""
    settings: Settings
    """By which frames are read."""

    def placed(self, frames: Frames, measured: ShiftColumns) -> ShiftColumns:
        """Take shifts from the fit of both layers to frames, of which `measured` is without the still one."""
        shifts, sigma = np.full((2, *measured.shifts.shape), np.nan)
        shifts[self.numbers], sigma[self.numbers] = self.layers.shifts, self.sigma
        own = measured.shifts[self.numbers]
        known = measured.usable & np.isfinite(measured.shifts).all(axis=1)
        offset = own - self.layers.shifts
        reference = int(np.argmin(np.nan_to_num(np.abs(own).max(axis=1), nan=np.inf)))
        # A mean of frames lies where it lies.
        is_one = np.abs(own[reference]).max() <= _ROUNDING
        offset = offset[reference] if is_one else np.nanmedian(offset, axis=0)
        others = np.setdiff1d(np.flatnonzero(known), self.numbers)
        for first in range(0, others.size, _AT_ONCE):
            some = others[first : first + _AT_ONCE]
            about = measured.shifts[some] - offset
            shifts[some], sigma[some] = self.layers.placed(taken(frames, some, self.settings), about)
        shifts += offset
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.maximum(_SAME_PEAK, _DEVIATIONS * np.hypot(sigma, np.nan_to_num(measured.sigma)))
            same = known & (np.abs(shifts - measured.shifts) <= near).all(axis=1)
        found = np.where(same[:, None], shifts, measured.shifts)
        return replace(
            measured,
            shifts=found,
            sigma=np.where(same[:, None], sigma, measured.sigma),
        )
