"""Of two parts of a picture that each move as one, which is the scene.

An object that fills a third of the picture stands out as well as what it moves over, and where one of the two is left
out, a shift of the other is found, each as sure as can be. What lies behind reaches the rim of the picture on most
sides, and shows elsewhere as well; what is in front does not. Where that does not tell, nothing is told.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.parts.masks import shares, windowed, windows
from xcorr_app.registration.parts.tile_agreement import AGREES

_LARGE = 0.12
"""Share of the tiles that can tell, from which what moves otherwise may be the scene itself."""
_FEWEST = 6
"""Tiles that agree with one shift and not with the other, of a part that moves as one."""
_APART = 1.5
"""Pixels between the shifts of two motions."""
_AT_RIM, _MORE = 2.0, 1.5
"""How many times more of the rim, or of the picture, agrees with the scene's shift."""
_NOT_LESS = 0.7
"""Share of the picture of the other that what reaches the rim fills at least."""
_ON_SIDE = 2
"""Tiles by which something reaches a side of the picture, and"""
_MOST_SIDES = 3
"""sides that only what lies behind reaches, if the other reaches one of them at most."""
_OFF, _SCATTERS = 0.3, 3.0
"""Pixels, and median deviations, by which a shift lies off the line between frames that were told."""

Tiles = NDArray[np.float32]


@dataclass(frozen=True)
class Rest:
    """What was left out of the reference, (T, rows, columns) of tiles: it alone is looked for in the whole frames."""

    out: NDArray[np.bool_]

    def leave_out(self, images: Array, frames: Array, numbers: NDArray[np.intp], *, noisy: bool) -> tuple[Array, Array]:
        """Images (1 or n, h, w) without all else, and frames (n, h, w) as they are."""
        nowhere = np.zeros((numbers.size, 2))
        of_images, _ = windows(~self.out[numbers], frames.shape[1:], nowhere, frames, noisy=noisy)
        return windowed(images, of_images), frames


def may_be_scene(tiles: Tiles) -> NDArray[np.bool_]:
    """Frames (T,) of which so much moves otherwise than their shift that it may be the scene."""
    with np.errstate(invalid="ignore"):
        found: NDArray[np.bool_] = shares(tiles) >= _LARGE
    return found


def are_two(one: Tiles, other: Tiles, of_one: NDArray[np.float64], of_other: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Frames (T,) in which a fair part agrees with either of two shifts (T, 2) alone."""
    apart = np.hypot(*(of_one - of_other).T) > _APART
    both = [(these == AGREES).sum(axis=(1, 2)) >= _FEWEST for these in _alone(one, other)]
    found: NDArray[np.bool_] = apart & both[0] & both[1]
    return found


def stands_behind(one: Tiles, other: Tiles) -> NDArray[np.bool_]:
    """Frames (T,) in which the shift that the first tiles agree with is that of the scene, beyond doubt."""
    alone = _alone(one, other)
    area = [(these == AGREES).sum(axis=(1, 2)) for these in alone]
    rim = [_share_of_rim(these) for these in alone]
    sides = [_sides(these) for these in alone]
    reaches = ((rim[0] > 0) & (rim[0] >= _AT_RIM * rim[1])) | ((sides[0] >= _MOST_SIDES) & (sides[1] <= 1))
    fills = (area[0] >= _MORE * area[1]) & (rim[0] >= rim[1])
    found: NDArray[np.bool_] = (reaches & (area[0] >= _NOT_LESS * area[1])) | fills
    return found


def from_line(shifts: NDArray[np.float64], line: NDArray[np.float64], told: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Pixels (T,) that shifts (T, 2) lie off the line between those of frames that were told, held at the ends."""
    frames, known = np.arange(told.size), np.flatnonzero(told)
    there = np.stack([np.interp(frames, known, line[known, axis]) for axis in range(2)], axis=1)
    distance: NDArray[np.float64] = np.hypot(*(shifts - there).T)
    return distance


def may_lie_off(line: NDArray[np.float64], told: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Pixels (T,) that frames may lie off it, by how much those told scatter; beyond the ends there is no line."""
    known = np.flatnonzero(told)
    steps = line[known[1:-1]] - (line[known[:-2]] + line[known[2:]]) / 2
    allowed = np.full(told.size, np.inf)
    allowed[known[0] : known[-1] + 1] = _OFF + (_SCATTERS * float(np.median(np.hypot(*steps.T))) if len(steps) else 0.0)
    return allowed


def _alone(one: Tiles, other: Tiles) -> tuple[Tiles, Tiles]:
    """Tiles of both, NaN where they agree with either shift."""
    both = (one == AGREES) & (other == AGREES)
    return np.where(both, np.nan, one), np.where(both, np.nan, other)


def _share_of_rim(tiles: Tiles) -> NDArray[np.float64]:
    """Share (T,) of the tiles at the rim of the picture that can tell, that agree."""
    at_rim = np.ones(tiles.shape[1:], dtype=bool)
    at_rim[1:-1, 1:-1] = False
    told = np.isfinite(tiles)[:, at_rim].sum(axis=1)
    share: NDArray[np.float64] = (tiles[:, at_rim] == AGREES).sum(axis=1) / np.maximum(told, 1)
    return share


def _sides(tiles: Tiles) -> NDArray[np.intp]:
    """How many sides (T,) of the picture the tiles that agree reach."""
    agrees = tiles == AGREES
    rims = agrees[:, 0], agrees[:, -1], agrees[:, :, 0], agrees[:, :, -1]
    sides: NDArray[np.intp] = np.sum([rim.sum(axis=1) >= _ON_SIDE for rim in rims], axis=0)
    return sides
