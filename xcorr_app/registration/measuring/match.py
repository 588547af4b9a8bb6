"""What is found of each frame when it is compared with its reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.plane_peaks import lacks_neighbours
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration import quality
from xcorr_app.registration.columns import Columns
from xcorr_app.registration.measuring.measured import Measured
from xcorr_app.registration.parts.tiles import Judged
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.preparation import Prepared
from xcorr_app.registration.standard_error.peak_shapes import PeakShapes, narrowness_of


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

    def of(self, rows: NDArray[np.intp]) -> Compared:
        """Some of the frames."""
        if rows.size == self.signal_fractions.size:
            return self
        return Compared(self.match.of(rows), self.signal_fractions[rows], self.values[rows], self.shapes.of(rows))


@dataclass
class ChunkResult:
    """Columns and shapes of peaks of frames from `start` on, and what looks at the tiles of some of them."""

    start: int
    columns: Measured
    shapes: PeakShapes
    look: Judged | None = None

    @classmethod
    def of(cls, start: int, prepared: Prepared, reasons: dict[int, str], tiles: tuple[int, int]) -> ChunkResult:
        """Before anything is compared."""
        count = prepared.usable.size
        columns = Measured.empty(count, tiles)
        columns.usable, columns.flat, columns.unreadable = prepared.usable, prepared.flat, prepared.unreadable
        columns.non_finite, columns.reasons = prepared.non_finite, reasons
        return cls(start, columns, PeakShapes.empty(count))

    def fill(
        self,
        rows: NDArray[np.intp],
        found: Compared,
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
