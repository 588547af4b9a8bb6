"""Shifts of a scene over a layer that stands still, where both were fitted together and none was taken off."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from xcorr_app.registration.measuring.measured import ShiftColumns

_PERHAPS_OFF, _LARGE = 3.0, 0.5
"""Standard errors, and pixels beyond them, by which a shift is another."""


@dataclass(frozen=True)
class JointShifts:
    """Shifts (T, 2) and their standard errors, of a scene over a pattern; NaN where a frame has none."""

    shifts: NDArray[np.float64]
    sigma: NDArray[np.float64]
    strength: float
    """Standard deviation of the pattern over that of the scene."""

    @property
    def note(self) -> str:
        """What was done, in words."""
        return (
            "A fixed pattern, which stands still while the scene moves by a few pixels (camera or illumination; "
            f"{100 * self.strength:.0f} % of the scene's contrast), was fitted together with the shifts."
        )

    def is_near(self, others: NDArray[np.float64]) -> bool:
        """Whether shifts are next to others."""
        return not np.isinf(self.sigma).any() and bool(
            np.nanmax(np.abs(self.shifts - others) - _PERHAPS_OFF * self.sigma) < _LARGE
        )

    def replacing(self, measured: ShiftColumns) -> ShiftColumns:
        """Shifts measured, replaced by these; what an engine and its check differ by stays so."""
        known: NDArray[np.bool_] = np.asarray(np.isfinite(self.shifts).all(axis=1))
        # What differs from tile to tile, and a second peak, is the pattern, which is accounted for.
        return replace(
            measured,
            shifts=np.where(known[:, None], self.shifts, measured.shifts),
            sigma=np.where(known[:, None], self.sigma, measured.sigma),
            peak_ratio=np.where(known, np.nan, measured.peak_ratio),
            inconsistent=measured.inconsistent & ~known,
            partial=measured.partial & ~known,
        )
