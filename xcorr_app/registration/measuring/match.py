"""What is found of each frame when it is compared with its reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.columns import Columns
from xcorr_app.registration.standard_error.peak_shapes import PeakShapes


@dataclass(frozen=True)
class Match(Columns):
    """Result for n frames, on the host. Shifts in pixels (row, column), to be added to the frame."""

    peak: NDArray[np.intp]
    """(n, 2) integer shifts at the highest value inside the window."""
    shift: NDArray[np.float64]
    """(n, 2) float64, refined; NaN where no shift is valid."""
    score: NDArray[np.float64]
    """(n,) zero-mean normalised correlation at the shift."""
    ratio: NDArray[np.float64]
    """(n,) first peak over the strongest other local maximum inside the window's rim; inf where there is none."""
    climbs: NDArray[np.bool_]
    """(n,) whether the correlation goes on rising beyond the window."""
    around: NDArray[np.float64]
    """(n, 5, 5) zero-mean normalised correlation around the integer peak; NaN where not computed: of the outer sixteen,
    all of those of a frame may be."""
    near: NDArray[np.float64]
    """(n, 3, 3) the plane that was searched, around the integer peak."""
    significance: NDArray[np.float64]
    """(n,) height of the peak in standard deviations of the plane; NaN where not known."""
    false_alarm: NDArray[np.float64]
    """(n,) probability of such a peak by chance; NaN where not known."""


@dataclass(frozen=True)
class Compared:
    """Frames that were compared with their reference."""

    match: Match
    clean: NDArray[np.float64]
    """(n,) fraction of each frame's variance that is not white noise."""
    values: Array
    """(n, h, w) the frames as they were compared."""
    shapes: PeakShapes
    """Of the peaks."""
    flat: NDArray[np.bool_] | None = None
    """(n,) frames of one value, of which nothing else is true; None where comparing did not tell."""
    others: NDArray[np.intp] | None = None
    """Frames that a device left to other means."""

    def of(self, rows: NDArray[np.intp]) -> Compared:
        """Some of the frames."""
        if rows.size == self.clean.size:
            return self
        return Compared(self.match.of(rows), self.clean[rows], self.values[rows], self.shapes.of(rows))
