"""The peak of every plane, on the host: where it is, what lies around it, how far it stands above the rest.

On a device one kernel finds all of it (``kernels/peaks/rated_peak.cu``), by the rules of the array operations here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.normalize import Overlaps
from xcorr_app.correlation.peaks import find_peaks, neighbourhoods, prefer
from xcorr_app.gpu.peaks.rated_peak import rate_peaks
from xcorr_app.gpu.runtime.arrays import Array, is_device_array
from xcorr_app.registration.standard_error.significance import Significance, Spread, rated, significance, strides_of


@dataclass(frozen=True)
class Planes:
    """Correlation of n frames with their references over the window, on the device of the frames."""

    values: Array
    """(n, h, w) the frames, standardised or as stored."""
    searched: Array
    """(n, ny, nx) the plane whose peak is the shift."""
    all_scores: Array
    """Zero-mean normalised correlation, not weighted, over the whole window of the engine: larger where searched planes
    are smoothed ones."""
    overlap: Overlaps
    """Of the frames, over the whole window of the engine."""
    references: Array
    """(1 or n, h, w) what the frames were compared with."""
    of_references: Overlaps

    @property
    def scores(self) -> Array:
        """(n, ny, nx) scores of the shifts that are searched."""
        rim = (self.all_scores.shape[1] - self.searched.shape[1]) // 2
        return self.all_scores[:, rim:-rim, rim:-rim] if rim else self.all_scores


@dataclass(frozen=True)
class FoundPeaks:
    """One entry a plane."""

    row: NDArray[np.intp]
    column: NDArray[np.intp]
    """Indices into the plane that was searched."""
    value: NDArray[np.float64]
    """NaN where the plane has no valid element."""
    rival: NDArray[np.float64]
    """Height of the highest local maximum elsewhere; -inf where there is none."""
    climbs: NDArray[np.bool_]
    """Whether one of the eight values around is higher: it lies beyond the window."""
    around: NDArray[np.float64]
    """(n, 5, 5) scores."""
    near: NDArray[np.float64]
    """(n, 3, 3) of the plane that was searched."""
    rating: Significance

    def ratio(self) -> NDArray[np.float64]:
        """First peak over second; infinite where no positive rival exists, NaN where there is no peak."""
        positive = self.rival > 0
        ratio = np.where(positive, self.value / np.where(positive, self.rival, 1.0), np.inf)
        return np.where(np.isnan(self.value), np.nan, ratio)

    def indices(self, xp: Any) -> tuple[Array, Array]:
        """Rows and columns, as arrays of numpy or cupy."""
        return xp.asarray(self.row), xp.asarray(self.column)


def find_rated_peaks(
    planes: Planes,
    box: tuple[slice, slice],
    tied: NDArray[np.integer] | None,
    zero: tuple[int, int] | None = None,
    *,
    plain: bool,
    rate: bool = True,
) -> FoundPeaks:
    """Find the peak of each plane within a box.

    `tied` (n, 2) are elements of the planes that are taken for peaks where the plane is equally high there, up to
    rounding; without them, of equal elements the one nearest to `zero`, row and column of shift zero, where that is
    given. `plain` says that the planes searched are the scores; without `rate`, how far peaks stand out is left open.
    """
    shape = box[0].stop - box[0].start, box[1].stop - box[1].start
    if is_device_array(planes.searched):
        found = rate_peaks(
            planes.searched, planes.all_scores, box, strides_of(shape), tied, zero, fisher=plain and rate, rate=rate
        )
        rating = Significance(*np.full((2, len(found.value)), np.nan))
        if rate:
            spreads = [Spread(m[:, 0], m[:, 1], m[:, 2:].T, found.samples) for m in np.moveaxis(found.medians, 1, 0)]
            rating = rated(shape, (found.value, spreads[0]), (found.transformed, spreads[1]) if plain else None)
        climbs = _beyond(found.climbs, found.row, found.column, box)
        return FoundPeaks(found.row, found.column, found.value, found.rival, climbs, found.around, found.near, rating)
    peaks = find_peaks(planes.searched, box, zero if tied is None else None)
    if tied is not None:
        peaks = prefer(peaks, planes.searched, tied)
    around = neighbourhoods(planes.scores, peaks.row, peaks.column, 2)
    near = neighbourhoods(planes.searched, peaks.row, peaks.column, 1)
    climbs = (near > peaks.value[:, None, None]).any(axis=(1, 2))
    rating = Significance(*np.full((2, len(planes.searched)), np.nan))
    if rate:
        of_box = peaks.row - box[0].start, peaks.column - box[1].start
        rating = significance(planes.searched[:, *box], *of_box, peaks.value, scores=plain)
    climbs = _beyond(climbs, peaks.row, peaks.column, box)
    return FoundPeaks(peaks.row, peaks.column, peaks.value, peaks.rival, climbs, around, near, rating)


def _beyond(
    climbs: NDArray[np.bool_], row: NDArray[np.intp], column: NDArray[np.intp], box: tuple[slice, slice]
) -> NDArray[np.bool_]:
    """Peaks beside which the plane is higher beyond the box: within, it is so by rounding, where peaks are tied."""
    if not climbs.any():
        return climbs
    on_rim = np.zeros_like(climbs)
    for place, along in ((row, box[0]), (column, box[1])):
        on_rim |= (place == along.start) | (place == along.stop - 1)
    return climbs & on_rim
