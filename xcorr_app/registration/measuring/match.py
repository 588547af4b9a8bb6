"""What is found of each frame when it is compared with its reference: the peak of its plane, and what is around it.

On a device one kernel finds peaks (``kernels/peaks/rated_peak.cu``), by the rules of the array operations here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.normalize import Overlaps
from xcorr_app.correlation.peaks import Peaks, find_peaks, neighbourhoods, prefer
from xcorr_app.correlation.plane_peaks import lacks_neighbours
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.peaks.rated_peak import rate_peaks
from xcorr_app.gpu.runtime.arrays import Array, is_device_array
from xcorr_app.registration import quality
from xcorr_app.registration.columns import Columns
from xcorr_app.registration.measuring.measured import ShiftColumns
from xcorr_app.registration.parts.tiles import Judged
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.preparation import PreparedChunk
from xcorr_app.registration.standard_error.peak_shapes import PeakShapes, narrowness_of
from xcorr_app.registration.standard_error.significance import Significance, Spread, rated, significance, strides_of


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
class Comparison:
    """Frames that were compared with their reference."""

    match: Match
    signal_fractions: NDArray[np.float64]
    """(n,) fraction of each frame's variance that is not white noise."""
    values: Array
    """(n, h, w) the frames as they were compared."""
    shapes: PeakShapes
    """Of the peaks."""
    flat: NDArray[np.bool_] | None = None
    """(n,) frames of one value, of which nothing else is true; None where comparing did not tell."""
    others: NDArray[np.intp] | None = None
    """Frames that a device left to other means."""

    def of(self, rows: NDArray[np.intp]) -> Comparison:
        """Some of the frames."""
        if rows.size == self.signal_fractions.size:
            return self
        return Comparison(self.match.of(rows), self.signal_fractions[rows], self.values[rows], self.shapes.of(rows))


@dataclass
class ChunkResult:
    """Columns and shapes of peaks of frames from `start` on, and what looks at the tiles of some of them."""

    start: int
    columns: ShiftColumns
    shapes: PeakShapes
    look: tuple[NDArray[np.intp], Judged] | None = None
    """Numbers of those, and what their tiles say once a device has been waited for."""

    @classmethod
    def of(cls, start: int, prepared: PreparedChunk, reasons: dict[int, str], tiles: tuple[int, int]) -> ChunkResult:
        """Before anything is compared."""
        count = prepared.usable.size
        columns = ShiftColumns.empty(count, tiles)
        columns.usable, columns.flat, columns.unreadable = prepared.usable, prepared.flat, prepared.unreadable
        columns.non_finite, columns.reasons = prepared.non_finite, reasons
        return cls(start, columns, PeakShapes.empty(count))

    def fill(
        self,
        rows: NDArray[np.intp],
        found: Comparison,
        signal_fractions: NDArray[np.float64],
        shape: tuple[int, ...],
        window: ShiftWindow,
        settings: Settings,
    ) -> None:
        """Take in usable frames that were compared with images of a `shape`, whose signal fractions are given."""
        match, columns = found.match, self.columns
        # A slice where all are usable, as they mostly are: that is written several times as fast.
        frames = slice(None) if rows.size == columns.usable.size else rows
        overlap = np.prod(np.maximum(np.array(shape) - np.abs(match.peak), 0), axis=1)
        by_chance = quality.score_by_chance(overlap, window)
        columns.chance_score[frames] = by_chance
        columns.score_limit[frames] = quality.doubtful_below(
            settings.min_score, signal_fractions, found.signal_fractions, by_chance
        )
        columns.shifts[frames], columns.score[frames] = match.shift, match.score
        columns.peak_ratio[frames], columns.significance[frames] = match.ratio, match.significance
        columns.false_alarm[frames], columns.narrowness[frames] = match.false_alarm, narrowness_of(match.around)
        # Shifts beyond the peak may lie outside the window, or leave too little overlap to score.
        unknown = lacks_neighbours(match.around[:, 1:4, 1:4], window)
        columns.on_edge[frames] = quality.on_edge(match.peak, window) | match.climbs | unknown
        self.shapes.put(frames, found.shapes)


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
class FoundPeaks(Peaks):
    """Peaks of planes that were searched, and what is around them."""

    climbs: NDArray[np.bool_]
    """Whether one of the eight values around is higher: it lies beyond the window."""
    around: NDArray[np.float64]
    """(n, 5, 5) scores."""
    near: NDArray[np.float64]
    """(n, 3, 3) of the plane that was searched."""
    rating: Significance

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
