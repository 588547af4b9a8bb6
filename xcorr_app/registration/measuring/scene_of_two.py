"""Which of two parts that each move as one is the scene: what was left out of frames is measured, too.

See :mod:`xcorr_app.registration.parts.two_scenes` for what tells them apart. Where nothing does in a frame, the frames
beside it may, since both parts move steadily; else no shift of it stands.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.registration.measuring.measured import Measured
from xcorr_app.registration.measuring.one_pass import OnePass
from xcorr_app.registration.measuring.references import Reference
from xcorr_app.registration.parts import masks
from xcorr_app.registration.parts.tile_agreement import AGREES, DIFFERS
from xcorr_app.registration.parts.two_scenes import Rest, are_two, from_line, may_be_scene, may_lie_off, stands_behind
from xcorr_app.registration.quality import AMBIGUOUS_RATIO
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.standard_error.significance import MAX_FALSE_ALARM

_SAME = 1.0
"""Pixels up to which two shifts are of one peak."""
_REFERENCE = 1e-3
_FEWEST = 3
"""Frames that were told, from which they tell others."""
_NEARER = 0.25
"""Distance from the line between them of the one motion, over that of the other, by which it is told."""
_STILL = 1.0
"""Pixels by which what is not the scene moves at least, as a rule, if it crosses it: less, and it may be a pattern of
the camera's."""
_MOST_MOVES = 0.5
"""Share of the tiles that can tell which move, from which what stands still is not known to be the scene."""

Rows = NDArray[np.bool_]


@dataclass(frozen=True)
class Told:
    """Of frames (T,) that show two motions, which is the scene's."""

    kept: Rows
    """That of what was kept."""
    rest: Rows
    """That of what was left out, as measured by"""
    of_rest: Measured
    doubtful: Rows
    """It is not known, or lies where no scene can be."""

    def settle(self, columns: Measured, without: Measured) -> Measured:
        """Take the shifts of the scene; `without` are those of what was kept."""
        for measured, taken in ((without, self.kept), (self.of_rest, self.rest)):
            if taken.any():
                before = columns
                columns = columns.replaced(measured, taken)
                columns.partial = before.partial | taken
                columns.inconsistent = before.inconsistent & ~taken
                columns.settled = before.settled | taken
        columns.inconsistent |= self.doubtful
        columns.crossed = not self._over_something_still(without)
        return columns

    def _over_something_still(self, without: Measured) -> bool:
        """Whether the scene moves, and the rest does not."""
        other = np.where(self.kept[:, None], self.of_rest.shifts, without.shifts)[self.kept | self.rest]
        return bool(len(other) > 0 and np.median(np.hypot(*other.T)) < _STILL)


def scene_of_two(
    once: OnePass,
    reference: Reference,
    stage: str,
    verified: Rows,
    columns: Measured,
    without: Measured,
    settings: Settings,
) -> Told | None:
    """Measure what was left out of frames (T,) for a second motion; None where there is none.

    `columns` are the frames as a whole, `without` less the tiles that differ.
    """
    large = may_be_scene(columns.tiles) & np.isfinite(without.shifts).all(axis=1)
    if not large.any():
        return None
    rest = once.compare(
        reference, stage, np.zeros_like(large), large, Rest(~(columns.tiles == AGREES) | ~large[:, None, None])
    )
    with np.errstate(invalid="ignore"):
        sure = (rest.sigma <= settings.sure_sigma).all(axis=1) & ~(rest.false_alarm > MAX_FALSE_ALARM)
        sure &= ~(rest.peak_ratio < AMBIGUOUS_RATIO) & ~rest.on_edge & (rest.score > rest.chance_score)
        two = large & sure & are_two(without.tiles, rest.tiles, without.shifts, rest.shifts)
    if 2 * two.sum() < large.sum():
        return None
    kept, behind = two & stands_behind(without.tiles, rest.tiles), np.zeros_like(two)
    fine, two_still = rest, behind
    if (two & ~kept).any():
        shifts = np.where(two[:, None], rest.shifts, without.shifts)
        parts = masks.Parts(np.where(two[:, None, None], rest.tiles, without.tiles) == DIFFERS, shifts)
        fine = once.compare(reference, stage, verified, np.ones_like(two), parts)
        with np.errstate(invalid="ignore"):
            two_still = two & (np.abs(fine.shifts - rest.shifts) < _SAME).all(axis=1)
        behind = two_still & ~kept & stands_behind(rest.tiles, without.tiles)
    with np.errstate(invalid="ignore"):
        same = (np.abs(columns.shifts) < _REFERENCE).all(axis=1) & (masks.shares(columns.tiles) == 0)
    told = kept | behind | same
    doubtful = two & ~told
    if (kept | behind).sum() >= _FEWEST:
        line = np.where(behind[:, None], fine.shifts, np.where(kept[:, None], without.shifts, columns.shifts))
        of_kept, of_rest = (from_line(each.shifts, line, told) for each in (without, fine))
        kept |= doubtful & (of_kept < _NEARER * of_rest)
        behind |= doubtful & two_still & (of_rest < _NEARER * of_kept)
        # A frame in which the two lie too near each other follows either, or lies between them.
        elsewhere = columns.usable & ~two & ~same
        astray = elsewhere & (from_line(columns.shifts, line, told) > may_lie_off(line, told))
        doubtful = (two & ~kept & ~behind) | astray
    # A rim that stands still, of a detector or a stop, is around a scene that moves as it is around one that does not.
    with np.errstate(invalid="ignore"):
        of_still, of_moving = masks.shares(rest.tiles), masks.shares(without.tiles)
        still = behind & (np.hypot(*fine.shifts.T) < _STILL) & (of_still > _MOST_MOVES) & (of_moving < of_still)
    if 2 * still.sum() > behind.sum():
        kept, behind, doubtful = kept | still, behind & ~still, doubtful | still
    if not behind.any() and 2 * two.sum() < columns.usable.sum():
        # Parts of a few frames that move otherwise, never taken for the scene: that may be as jerky as it likes.
        return None
    return Told(kept, behind, fine, doubtful)
