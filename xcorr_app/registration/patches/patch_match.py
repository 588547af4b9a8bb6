"""Patches of frames looked for in a reference, several frames at once, and where to trust what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.field.smooth_field import LocalLinear, normalised_median
from xcorr_app.registration.field.window_match import Search, WindowMatch, Windows, match_together
from xcorr_app.registration.standard_error.significance import MAX_FALSE_ALARM
from xcorr_app.registration.warping.grid import Grid

Floats = NDArray[np.float64]

_OUTLIER = 3.0
"""Normalised median above which a patch does not belong to its neighbours."""
_FIELD_REACH = 0.6
"""Standard deviation, over the spacing of the patches, of the Gaussian by which a field follows them."""
_DEVIATIONS = 4.0
"""Of the scores of noise, that a patch must reach to be trusted."""


@dataclass(frozen=True)
class PatchSearch:
    """A frame, and the patches of its reference, both at the size at which they are matched."""

    windows: Windows
    image: Array
    sigma: float
    """Pixels of the full size of the Gaussian that the images lie under."""
    start: Floats
    """(2,) rows, columns in pixels by which the frame is displaced as a whole."""


@dataclass(frozen=True)
class Matched:
    """The patches of one frame."""

    shift: Floats
    """(n, 2) displacement in pixels of the full size."""
    score: Floats
    """(n,)"""
    significance: Floats
    """(n,)"""
    trusted: NDArray[np.bool_]
    """(n,)"""


class PatchMatcher:
    """Matches the patches of a grid, made smaller by a factor, and leads fields at places (m, 2) through them."""

    def __init__(self, grid: Grid, places: Floats, patch: int, reach: float, smaller: int) -> None:
        self.grid, self.smaller, self.side = grid, smaller, patch // smaller
        self._patch = patch
        self.reach = int(np.ceil(reach / smaller))
        """Pixels of the smaller size within which patches are looked for."""
        firsts = np.meshgrid(grid.rows.firsts, grid.columns.firsts, indexing="ij")
        self.firsts: NDArray[np.intp] = np.stack([values.ravel() // smaller for values in firsts], axis=1)
        middles = np.meshgrid(grid.rows.middles, grid.columns.middles, indexing="ij")
        self.middles: Floats = np.stack([values.ravel() for values in middles], axis=1)
        """(n, 2) in pixels of the full size."""
        self.step = float(
            max(np.diff(axis.middles).mean() if axis.count > 1 else axis.size for axis in (grid.rows, grid.columns))
        )
        self.field_reach = _FIELD_REACH * self.step
        """Standard deviation in pixels of the Gaussian by which a field follows patches."""
        self.places = places
        """(m, 2) of the nodes of fields, in pixels."""
        self._around = LocalLinear(self.middles, self.middles, self.step)
        self._field = LocalLinear(self.middles, places, self.field_reach)

    def windows(self, image: Array) -> Windows:
        """Patches of a reference of the smaller size."""
        return Windows(image, self.firsts[:, 0], self.firsts[:, 1], self.side, self.reach)

    def matched(self, frames: Sequence[PatchSearch]) -> list[Matched]:
        """Match patches around the displacements of their frames; those lost once more around their neighbours'."""
        count = len(self.middles)
        starts = np.rint(np.stack([frame.start for frame in frames]) / self.smaller).astype(np.intp)
        offsets = np.broadcast_to(starts[:, None], (len(frames), count, 2))
        by_chance = np.array([self.by_chance(frame.sigma) for frame in frames])
        searches = [Search(frame.windows, frame.image, offset) for frame, offset in zip(frames, offsets, strict=True)]
        match = match_together(searches)
        trusted = self._trusted(match, by_chance)
        again = {f: np.flatnonzero(~known) for f, known in enumerate(trusted) if known.any() and not known.all()}
        if again:
            found = match.shift.reshape(-1, count, 2)
            searches = []
            for f, lost in again.items():
                known = trusted[f]
                near = self._around(np.where(known[:, None], found[f], 0.0), known.astype(np.float64))[lost]
                limit = 2 * self.reach
                nearby = np.rint(np.clip(near, starts[f] - limit, starts[f] + limit)).astype(np.intp)
                searches.append(Search(frames[f].windows, frames[f].image, nearby, lost))
            second = match_together(searches)
            places = np.concatenate([f * count + lost for f, lost in again.items()])
            for name in (each.name for each in fields(match)):
                getattr(match, name)[places] = getattr(second, name)
            trusted = self._trusted(match, by_chance)
        shift = self.smaller * match.shift
        parts = zip(
            shift.reshape(-1, count, 2),
            match.score.reshape(-1, count),
            match.significance.reshape(-1, count),
            trusted,
            strict=True,
        )
        return [Matched(*part) for part in parts]

    def field_through(self, match: Matched, rigid: Floats) -> Floats:
        """Displacements (m, 2) at the places, smooth through the trusted patches; the frame's own if there are none."""
        known = match.trusted
        if not known.any():
            return np.broadcast_to(rigid, (len(self.places), 2)).copy()
        score = np.clip(match.score, 0.01, 0.99)
        weights = np.where(known, score**2 / (1 - score**2), 0.0)
        return self._field(np.where(known[:, None], match.shift, 0.0), weights)

    def by_chance(self, sigma: float) -> float:
        """Score that patches of smoothed noise hardly reach."""
        alike = 1 + 4 * np.pi * (sigma / self.smaller) ** 2
        return float(_DEVIATIONS * np.sqrt(alike) * self.smaller / self._patch)

    def _trusted(self, match: WindowMatch, by_chance: Floats) -> NDArray[np.bool_]:
        """Which patches (frames, n) are."""
        frames, shape = len(by_chance), self.grid.shape
        with np.errstate(invalid="ignore"):
            stands_out = ~(match.false_alarm > MAX_FALSE_ALARM)
            stands_out &= match.score > np.repeat(by_chance, len(self.middles))
        good = np.isfinite(match.shift).all(axis=1) & ~match.on_edge & stands_out
        shifts = self.smaller * match.shift.reshape(frames, *shape, 2)
        away = normalised_median(shifts, good.reshape(frames, *shape), noise=0.5)
        trusted: NDArray[np.bool_] = (good & (away.ravel() <= _OUTLIER)).reshape(frames, -1)
        return trusted
