"""What measuring one chunk of frames contributes to the columns of a stack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.plane_peaks import lacks_neighbours
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.registration import quality
from xcorr_app.registration.measuring.match import Match
from xcorr_app.registration.measuring.measured import Measured
from xcorr_app.registration.parts.tiles import Judged, Look
from xcorr_app.registration.stack.preparation import Prepared
from xcorr_app.registration.standard_error.peak_shapes import PeakShapes, narrowness_of


@dataclass(frozen=True)
class Looked:
    """What tiles say, known: another process has no device to wait for."""

    found: tuple[NDArray[np.intp], Look]

    def __call__(self) -> tuple[NDArray[np.intp], Look]:
        """As `Judged` does."""
        return self.found


@dataclass
class ChunkResult:
    """What one chunk contributes; `rows` are the usable frames in it, `checked` those of them that were verified."""

    start: int
    prepared: Prepared
    rows: NDArray[np.intp]
    unreadable: dict[int, str]
    match: Match | None = None
    look: Judged | None = None
    score_limit: NDArray[np.float64] | None = None
    chance_score: NDArray[np.float64] | None = None
    shapes: PeakShapes | None = None
    checked: NDArray[np.intp] | None = None
    exact: Match | None = None
    disagrees: NDArray[np.bool_] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What travels to another process: no pixels."""
        look = None if self.look is None else Looked(self.look())
        return self.__dict__ | {"prepared": self.prepared.without_frames(), "look": look}

    def write(self, columns: Measured, shapes: PeakShapes, window: ShiftWindow) -> None:
        """Fill in this chunk's entries, but for what tiles say: a device may be looking at them."""
        prepared = self.prepared
        part = slice(self.start, self.start + prepared.usable.size)
        columns.usable[part], columns.flat[part] = prepared.usable, prepared.flat
        columns.unreadable[part], columns.non_finite[part] = prepared.unreadable, prepared.non_finite
        columns.reasons.update(self.unreadable)
        if self.match is None:
            return
        numbers = self.start + self.rows
        # A slice where all are usable, as a rule: that is written several times as fast.
        frames = part if self.rows.size == prepared.usable.size else numbers
        columns.shifts[frames], columns.score[frames] = self.match.shift, self.match.score
        columns.peak_ratio[frames] = self.match.ratio
        columns.score_limit[frames], columns.chance_score[frames] = self.score_limit, self.chance_score
        if self.shapes is not None:
            shapes.replace(frames, self.shapes)
        columns.significance[frames], columns.false_alarm[frames] = self.match.significance, self.match.false_alarm
        columns.narrowness[frames] = narrowness_of(self.match.around)
        # Shifts beyond the peak may lie outside the window, or leave too little overlap to score.
        unknown = lacks_neighbours(self.match.around[:, 1:4, 1:4], window)
        columns.on_edge[frames] = quality.on_edge(self.match.peak, window) | self.match.climbs | unknown
        if self.exact is not None and self.checked is not None:
            columns.fft_shifts[numbers[self.checked]] = self.exact.shift
            columns.definition_disagrees[numbers[self.checked]] = self.disagrees
