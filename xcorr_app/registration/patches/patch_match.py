"""Patches of frames looked for in a reference, several frames at once, and where to trust what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.field.smooth_field import OUTLIER, local_linear, normalised_median
from xcorr_app.registration.field.window_match import Search, WindowMatch, Windows, match_windows
from xcorr_app.registration.standard_error.significance import MAX_FALSE_ALARM
from xcorr_app.registration.warping.grid import Grid

Floats = NDArray[np.float64]

_FIELD_REACH = 0.6
"""Standard deviation, over the spacing of the patches, of the Gaussian by which a field follows them."""
_DEVIATIONS = 4.0
"""Of the scores of noise, that a patch must reach to be trusted."""


@dataclass(frozen=True)
class Matched:
    """The patches of frames."""

    shift: Floats
    """(T, n, 2) displacement in pixels of the full size."""
    score: Floats
    """(T, n)"""
    significance: Floats
    """(T, n)"""
    trusted: NDArray[np.bool_]
    """(T, n) whether each patch by itself was found where its neighbours are."""


class PatchMatcher:
    """Matches the patches of a grid, made smaller by a factor, and leads fields at places (m, 2) through them."""

    def __init__(self, grid: Grid, places: Floats, patch: int, reach: float, smaller: int) -> None:
        self.grid, self._smaller, self._side, self._patch = grid, smaller, patch // smaller, patch
        self._reach = int(np.ceil(reach / smaller))
        step = max(np.diff(axis.middles).mean() if axis.count > 1 else axis.size for axis in (grid.rows, grid.columns))
        self._step, self._places = float(step), places

    def windows(self, image: Array) -> Windows:
        """Patches of a reference of the smaller size."""
        return Windows(image, self.grid.firsts // self._smaller, self._side, self._reach)

    def matched(self, windows: Sequence[Windows], images: Array, sigma: float, starts: Floats) -> Matched:
        """Match patches of images (T, y, x) under a Gaussian of `sigma` pixels, displaced by `starts` (T, 2).

        Those lost are looked for once more around what their neighbours say.
        """
        frames, count = len(images), len(self.grid.middles)
        whole = np.rint(starts / self._smaller).astype(np.intp)
        offsets = np.broadcast_to(whole[:, None], (frames, count, 2))
        searches = [Search(*each) for each in zip(windows, images, offsets, strict=True)]
        found = vars(match_windows(searches))
        match = {name: values.reshape(frames, count, *values.shape[1:]) for name, values in found.items()}
        trusted = self.trusted(WindowMatch(**match), sigma)
        some: NDArray[np.bool_] = np.asarray(trusted.any(axis=1) & ~trusted.all(axis=1))
        if some.any():
            lost = ~trusted & some[:, None]
            limit, searches, middles = 2 * self._reach, [], self.grid.middles
            for t in np.flatnonzero(some).tolist():
                near = local_linear(middles, match["shift"][t], 1.0 * trusted[t], middles[lost[t]], self._step)
                nearby = np.rint(np.clip(near, whole[t] - limit, whole[t] + limit)).astype(np.intp)
                searches.append(Search(windows[t], images[t], nearby, np.flatnonzero(lost[t])))
            for name, values in vars(match_windows(searches)).items():
                match[name][lost] = values
            trusted = self.trusted(WindowMatch(**match), sigma)
        return Matched(self._smaller * match["shift"], match["score"], match["significance"], trusted)

    def fields_through(self, match: Matched, rigid: Floats) -> Floats:
        """Displacements (T, m, 2) at the places, smooth through trusted patches; a frame's own without any."""
        score = np.clip(match.score, 0.01, 0.99)
        weights = np.where(match.trusted, score**2 / (1 - score**2), 0.0)
        found, reach = np.repeat(rigid[:, None], len(self._places), axis=1), _FIELD_REACH * self._step
        for t in np.flatnonzero(match.trusted.any(axis=1)):
            found[t] = local_linear(self.grid.middles, match.shift[t], weights[t], self._places, reach)
        return found

    def by_chance(self, sigma: float) -> float:
        """Score that patches of smoothed noise hardly reach."""
        alike = 1 + 4 * np.pi * (sigma / self._smaller) ** 2
        return float(_DEVIATIONS * np.sqrt(alike) * self._smaller / self._patch)

    def trusted(self, match: WindowMatch, sigma: float) -> NDArray[np.bool_]:
        """Which patches (T, n) are."""
        with np.errstate(invalid="ignore"):
            stands_out = ~(match.false_alarm > MAX_FALSE_ALARM) & (match.score > self.by_chance(sigma))
        good = np.isfinite(match.shift).all(axis=2) & ~match.on_edge & stands_out
        shape = len(good), *self.grid.shape
        away = normalised_median(self._smaller * match.shift.reshape(*shape, 2), good.reshape(shape), noise=0.5)
        return np.asarray(good & (away.reshape(good.shape) <= OUTLIER))
