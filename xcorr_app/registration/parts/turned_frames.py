"""The shift of frames that turn, shrink or shear as well: that of their centre, by a linear motion of all of it.

A frame that turns has no one shift. The peak of its correlation lies at a mean of the shifts of its parts, weighted by
what they show, which may be a pixel from that of its centre. So where the tiles of a few frames move their edges
against their centres (``parts/tile_agreement.py``), a linear motion is fitted to all frames, from their
shifts on. It holds where tiles that differed agree under it, or most of what was not shared is: of things that move by
themselves neither is true.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import standardize, working_dtype
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.columns import Columns
from xcorr_app.registration.motion.starts import apart, likely_motions, log_polar
from xcorr_app.registration.parts import masks
from xcorr_app.registration.parts.tiles import Grid, look
from xcorr_app.registration.solver.basis import BASES
from xcorr_app.registration.solver.sampling import coefficients, sampled_through
from xcorr_app.registration.solver.whole_frames import Pyramid, score_of
from xcorr_app.registration.warping.matrices import Matrix, angle_of, scale_of, translated, turned

MIN_EDGE = 0.5
"""Pixels that an edge moves against the centre from which a frame does more than shift."""
_KNOWN = 0.25
"""Standard error in pixels of where an edge goes up to which a motion is known."""
_DIFFER = 0.03
"""Share of the tiles that may differ under a motion that holds, and"""
_OF_BEFORE = 0.5
"""share of those that differed before."""
_UNEXPLAINED = 0.6
"""What frame and reference do not share under a motion that holds, over that under a shift: where few tiles tell."""
_LEFT = 0.25
"""Pixels that a simpler motion may leave at an edge."""
_BEYOND = 1.0
"""Pixels that a centre may lie outside the window, as the place of a peak may between whole shifts."""
_MAX_STEPS = 16
"""Of a fit: of frames that turn, it has settled by then."""


@dataclass(frozen=True)
class TurnFits(Columns):
    """What was found of n frames."""

    shift: NDArray[np.float64]
    """(n, 2) in pixels, of the centre of the reference; NaN where no motion was found."""
    sigma: NDArray[np.float64]
    """(n, 2) its standard error."""
    linear: NDArray[np.float64]
    """(n, 2, 2) from places of the reference about its centre to those of the frame."""
    holds: NDArray[np.bool_]
    """(n,) whether the motion is known and tiles agree under it."""
    outliers: NDArray[np.bool_]
    """(n,) whether it does not hold, and tiles do not agree with the shift alone either."""
    tiles: NDArray[np.float32]
    """(n, rows, columns) which tiles agree under it."""

    @classmethod
    def empty(cls, count: int, tiles: tuple[int, int]) -> TurnFits:
        """Nothing found yet of `count` frames of so many tiles."""
        holds, outliers = (np.zeros(count, dtype=bool) for _ in range(2))
        shift, sigma = (np.full((count, 2), np.nan) for _ in range(2))
        maps = np.full((count, *tiles), np.nan, dtype=np.float32)
        return cls(shift, sigma, np.full((count, 2, 2), np.nan), holds, outliers, maps)


class StraightReference:
    """An image (1, h, w) that frames which turn are compared with."""

    def __init__(self, image: Array) -> None:
        self._image = _standard(image)
        self._pyramid = Pyramid(self._image, BASES["affine"])

    def compared(self, frames: Array, shift: NDArray[np.float64], window: ShiftWindow) -> TurnFits:
        """Motions of frames (n, h, w), from shifts (n, 2) on, whose centres stay in the window."""
        grid = Grid((int(frames.shape[1]), int(frames.shape[2])))
        found = TurnFits.empty(len(shift), grid.count)
        frames = _standard(frames)
        before = masks.shares(look(self._image, frames, shift).tiles)
        for i in np.flatnonzero(np.isfinite(shift).all(axis=1)):
            sizes = self._pyramid.sizes(frames[i : i + 1])
            most = max(_DIFFER, _OF_BEFORE * before[i]) if np.isfinite(before[i]) else _DIFFER
            for start in self._starts(shift[i], sizes[-1]):
                fits = self._pyramid.refined(
                    sizes, np.zeros(1, np.intp), start[None], most_steps=_MAX_STEPS, without_hold=0
                )
                motion, covariance = fits.motion[0], fits.covariance[0]
                if not (fits.converged[0] and fits.definite[0] and _edge_error(covariance, grid.shape) < _KNOWN):
                    continue
                if not _is_within(window, -motion[:2, 2]):
                    continue
                tiles = self._agreement(frames[i], motion, grid)
                score = score_of(self._pyramid.levels[0], sizes[0], translated(shift[i : i + 1]))[0]
                if masks.shares(tiles)[0] <= most or 1 - fits.score[0] < _UNEXPLAINED * (1 - score):
                    found.shift[i], found.linear[i] = -motion[:2, 2], motion[:2, :2]
                    found.sigma[i] = np.sqrt(np.diag(covariance)[:2])
                    found.tiles[i], found.holds[i] = tiles[0], True
                    break
        found.outliers[:] = ~found.holds & masks.is_outlier_by(before)
        return found

    def _starts(self, shift: NDArray[np.float64], small: Array) -> Iterator[Matrix]:
        """Where to begin: at the shift (2,); what turns too far for that is looked for at every angle."""
        begin = translated(shift[None])[0]
        yield begin
        level, shape = self._pyramid.levels[-1], self._pyramid.levels[0].shape
        (others,) = likely_motions(level, BASES["rigid"], self._spectrum, small, [[]], shape)
        if apart(others[0], begin, shape):
            yield others[0]

    @cached_property
    def _spectrum(self) -> Array:
        return log_polar(self._pyramid.levels[-1].image[None])

    def _agreement(self, frame: Array, motion: Matrix, grid: Grid) -> NDArray[np.float32]:
        """Which tiles (1, rows, columns) of a frame (h, w) agree when it is looked at through a motion."""
        seen = sampled_through(coefficients(frame[None]), motion[None])
        return look(self._image, seen, np.zeros((1, 2)), covered=_covered(grid, motion)).tiles


def note(linear: NDArray[np.float64], shape: tuple[int, int]) -> str:
    """Say what frames of this shape do by their motions (T, 2, 2), NaN where they have none, and what moves them so."""
    linear = linear[np.isfinite(linear).all(axis=(1, 2))]
    angle, scale = angle_of(linear), scale_of(linear)
    rigid, similar = (turned(np.radians(angle), size)[:, :2, :2] for size in (1.0, 1 / scale))
    edge = edges(linear - np.eye(2), shape).max()
    turns = f"turn by up to {np.abs(angle).max():.1f} degrees"
    grows = f"change size by up to {100 * np.abs(scale - 1).max():.1f} %"
    if edges(linear - rigid, shape).max() <= _LEFT:
        does, model = turns, "rigid"
    elif edges(linear - similar, shape).max() <= _LEFT:
        is_turned = edges(rigid - np.eye(2), shape).max() > _LEFT
        does, model = f"{turns} and {grows}" if is_turned else grows, "similarity"
    else:
        does, model = "turn, change size or shear", "affine"
    return (
        f"Frames {does}: their edges move by up to {edge:.1f} px against their centre, whose shift is given. "
        f"--motion {model} takes that back."
    )


def edges(linear: NDArray[np.float64], shape: tuple[int, int]) -> NDArray[np.float64]:
    """Pixels (n,) by which linear parts (n, 2, 2) move the middle of an edge against the centre."""
    moved = np.hypot(linear[:, 0], linear[:, 1]) * (np.array(shape) / 2)
    return np.asarray(moved.max(axis=1))


def _is_within(window: ShiftWindow, shift: NDArray[np.float64]) -> bool:
    """Whether a shift (2,) is one of those searched."""
    lowest, highest = (window.dy_min, window.dx_min), (window.dy_max, window.dx_max)
    return bool(((shift >= np.array(lowest) - _BEYOND) & (shift <= np.array(highest) + _BEYOND)).all())


def _standard(images: Array) -> Array:
    return standardize(images, working_dtype(images)).values


def _edge_error(covariance: NDArray[np.float64], shape: tuple[int, int]) -> float:
    """Largest standard error in pixels of where the middle of an edge goes; numbers in the order of the model."""
    variance = np.diag(covariance)
    of_edges = np.array([*(variance[[2, 4]] * (shape[0] / 2) ** 2), *(variance[[3, 5]] * (shape[1] / 2) ** 2)])
    worst = float((of_edges + variance[[0, 1, 0, 1]]).max())
    return float(np.sqrt(worst)) if np.isfinite(worst) else np.inf


def _covered(grid: Grid, motion: Matrix) -> NDArray[np.bool_]:
    """(1, rows, columns) which tiles a frame covers, looked at through a motion."""
    y, x = ((np.arange(size) - (size - 1) / 2) for size in grid.shape)
    places = [motion[axis, 0] * y[:, None] + motion[axis, 1] * x + motion[axis, 2] for axis in (0, 1)]
    inside: NDArray[np.bool_] = np.ones(grid.shape, dtype=bool)
    for place, pixels in zip(places, grid.shape, strict=True):
        inside[np.abs(place) > (pixels - 1) / 2] = False
    (rows, columns), size = grid.count, grid.size
    whole = inside[: rows * size, : columns * size].reshape(rows, size, columns, size)
    return np.asarray(whole.all(axis=(1, 3)))[None]
