"""Which of two parts that each move as one is the scene: what was left out of frames is measured, too.

An object that fills a third of the picture stands out as well as what it moves over, and where one of the two is left
out, a shift of the other is found, each as sure as can be. What lies behind reaches the rim of the picture, and shows
elsewhere as well; what is in front does not. Where that does not tell, no shift of the frame stands.
"""

import numpy as np
from numpy.typing import NDArray

from xcorr_app.registration.measuring.measured import SAME_PEAK, ShiftColumns
from xcorr_app.registration.measuring.one_pass import OnePass
from xcorr_app.registration.parts import masks
from xcorr_app.registration.parts.tile_agreement import AGREES, DIFFERS
from xcorr_app.registration.stack.preparation import Reference

_APART = 1.5
"""Pixels between the shifts of two motions."""
_MIN_TILES = 6
"""Tiles that agree with one shift and not with the other, of a part that moves as one."""
_AT_RIM, _MORE = 2.0, 1.5
"""How many times more of the rim, or of the picture, agrees with the scene's shift."""
_NOT_LESS = 0.5
"""Share of the picture of the other that what reaches the rim fills at least."""
_MOVING_MAJORITY = 0.5
"""Share of the tiles that can tell which move, from which what stands still is not known to be the scene."""
_ALL, _INNER = np.s_[:, :, :], np.s_[:, 1:-1, 1:-1]
"""Tiles, and those that are not at the rim."""
_STILL = 1.0
"""Pixels by which what is not the scene moves at least, as a rule, if it crosses it: less, and it may be a pattern of
the camera's."""

Rows = NDArray[np.bool_]


def scene_of_two(
    once: OnePass,
    reference: Reference,
    verified: Rows,
    columns: ShiftColumns,
    without: ShiftColumns,
    taken: Rows,
) -> ShiftColumns | None:
    """Measure what was left out of frames (T,) for a second motion, and take the scene's; None where there is none.

    `columns` are the frames as a whole, `without` less the tiles that differ, whose shifts are `taken` of some anyway.
    """
    large = masks.is_outlier_by(masks.shares(columns.tiles)) & np.isfinite(without.shifts).all(axis=1)
    if not large.any():
        return None
    # What was left out of the reference alone is looked for in the whole frames.
    agree = (columns.tiles == AGREES) & large[:, None, None]
    rest = once.compare(
        reference, np.zeros_like(large), large, masks.Parts(agree, np.zeros((large.size, 2)), of_images=True)
    )
    # Tiles that agree with one shift, and not with the other.
    with_one, with_other = without.tiles == AGREES, rest.tiles == AGREES
    one, other = with_one & ~with_other, with_other & ~with_one
    two = large & rest.trusted(once.settings) & (np.hypot(*(rest.shifts - without.shifts).T) > _APART)
    # At a shift by which everything is off alike, nothing differs: then it is no motion of a part.
    both = (with_one, rest), (with_other, without)
    two &= np.minimum(*((here & (at.tiles == DIFFERS)).sum(axis=(1, 2)) for here, at in both)) >= _MIN_TILES
    if 2 * two.sum() < large.sum():
        return None
    kept, behind = two & _is_behind(one, other, without), two & _is_behind(other, one, rest)
    fine = rest
    if behind.any():
        shifts = np.where(behind[:, None], rest.shifts, without.shifts)
        parts = masks.Parts(np.where(behind[:, None, None], rest.tiles, without.tiles) == DIFFERS, shifts)
        fine = once.compare(reference, verified, behind, parts)
        behind &= (np.abs(fine.shifts - rest.shifts) < SAME_PEAK).all(axis=1)
    if not behind.any() and 2 * two.sum() < columns.usable.sum():
        # Parts of a few frames that move otherwise, never taken for the scene.
        return None
    moves = np.hypot(*np.stack([without.shifts, rest.shifts], axis=-1).transpose(1, 2, 0))
    crossing = np.where(kept, moves[1], np.where(behind, moves[0], moves.min(axis=0)))[two]
    chosen = columns.replaced(without, taken)
    for rows, measured in ((kept, without), (behind, fine)):
        before, chosen = chosen, chosen.replaced(measured, rows)
        chosen.partial = before.partial | rows
        chosen.inconsistent = before.inconsistent & ~rows
        chosen.disambiguated = before.disambiguated | rows
    # Where most frames follow what crosses the scene, those in which the two lie too near each other may, too.
    astray = large & ~two & (2 * behind.sum() > two.sum())
    chosen.inconsistent |= (two & ~kept & ~behind) | astray
    chosen.occluded = not np.median(crossing) < _STILL
    return chosen


def _is_behind(one: Rows, other: Rows, of_one: ShiftColumns) -> Rows:
    """Frames (T,) in which the tiles of one motion are those of the scene: it fills more of the rim and of the rest."""
    area, inner = (np.array([tiles[part].sum(axis=(1, 2)) for tiles in (one, other)]) for part in (_ALL, _INNER))
    rim = area - inner
    fills = (rim[0] >= rim[1]) & (area[0] >= _MORE * area[1])
    # A rim that stands still, of a detector or a stop, is around a scene that moves as around one that does not.
    is_stop = (np.hypot(*of_one.shifts.T) < _STILL) & (masks.shares(of_one.tiles) > _MOVING_MAJORITY)
    reaches = (rim[0] >= _AT_RIM * rim[1]) & (area[0] >= _NOT_LESS * area[1]) & ~is_stop
    return np.asarray((rim[0] > 0) & (reaches | fills))
