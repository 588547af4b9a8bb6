"""Patches of frames matched with those of a reference, and one smooth field through all, for chunks of frames."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.arguments import is_number
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.gpu.runtime.constants import constants
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.registration import quality
from xcorr_app.registration.columns import Columns
from xcorr_app.registration.field.field_passes import OUTLIER, local_linear, normalised_median
from xcorr_app.registration.field.window_match import Search, WindowMatch, Windows, match_windows
from xcorr_app.registration.solver.smooth_field import FieldReference, Nodes, fitted
from xcorr_app.registration.solver.whole_frames import centred, halved, in_blocks, smoothed, smoothing_for, together
from xcorr_app.registration.standard_error.significance import MAX_FALSE_ALARM
from xcorr_app.registration.warping.grid import Grid, with_edges

DEFAULT_PATCH, DEFAULT_OVERLAP, DEFAULT_DEVIATION = 128, 0.5, 6.0
"""Pixels a side of a patch, the share that neighbours have in common, and pixels off the shift of the frame."""
_MIN_PATCH_SIDE = 16
"""Pixels a side of a patch at least."""
_HALVED_FROM = 64
"""Pixels a side from which patches are matched at half their size: the fit to all pixels follows."""
_FINEST = 0.7
"""Sigma in pixels of the Gaussian that all images lie under at least: the fit interpolates them linearly."""
_MAX_OVERLAP = 0.9
"""Beyond, neighbours tell the same, and their number, which memory goes by, grows without end."""


_FIELD_REACH = 0.6
"""Standard deviation, over the spacing of the patches, of the Gaussian by which a field follows them."""
_DEVIATIONS = 4.0
"""Of the scores of noise, that a patch must reach to be trusted."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PatchOptions:
    """How frames are cut, checked once."""

    patch: int = DEFAULT_PATCH
    overlap: float = DEFAULT_OVERLAP
    max_deviation: float = DEFAULT_DEVIATION

    def __post_init__(self) -> None:
        if not isinstance(self.patch, (int, np.integer)) or self.patch < _MIN_PATCH_SIDE:
            raise ArgumentError(f"patch is {self.patch!r}: give {_MIN_PATCH_SIDE} pixels or more")
        if not is_number(self.overlap) or not 0 <= self.overlap <= _MAX_OVERLAP:
            raise ArgumentError(f"patch_overlap is {self.overlap!r}: it is a fraction from 0 to {_MAX_OVERLAP}")
        if not is_number(self.max_deviation) or not 0 < self.max_deviation <= self.patch:
            raise ArgumentError(f"max_deviation is {self.max_deviation!r}: give pixels, at most a patch")

    @property
    def half(self) -> int:
        """Factor by which images are made smaller for matching."""
        return 2 if self.patch >= _HALVED_FROM else 1


@dataclass(frozen=True)
class FittedPatches(Columns):
    """One entry a frame; NaN of frames that could not be measured."""

    field: NDArray[np.float64]
    """(T, 2, gy, gx) rows, columns in pixels from a pixel of the reference to the place in the frame that shows it."""
    sigma: NDArray[np.float64]
    """(T, 2, gy, gx) standard errors in pixels."""
    score: NDArray[np.float64]
    """(T,)"""
    trusted: NDArray[np.bool_]
    """(T, n) whether each patch by itself was found where its neighbours are."""
    significance: NDArray[np.float64]
    """(T, n)"""


@functools.lru_cache(maxsize=8)
def _levels_of(grid: Grid, shape: tuple[int, int], half: int, xp: Any, _device: int | None) -> tuple[Nodes, ...]:
    """Nodes of a grid in frames at full size and perhaps at half, kept for the next call."""

    def levels() -> tuple[Nodes, ...]:
        nodes = Nodes(with_edges(grid.rows), with_edges(grid.columns), shape, xp)
        return (nodes, nodes.halved(xp)) if half == 2 else (nodes,)

    return constants(xp, levels)


class PatchFit:
    """Measures so many frames against an image, or each against one of its own, which that resembles."""

    def __init__(
        self,
        count: int,
        image: Array,
        own: Callable[[int], Array] | None,
        options: PatchOptions,
        xp: Any,
    ) -> None:
        shape, self._together = (int(image.shape[0]), int(image.shape[1])), together(count, image)
        self.grid = Grid.of(shape, options.patch, options.patch * (1 - options.overlap))
        self._half, self._xp, self._own = options.half, xp, own
        self._levels = _levels_of(self.grid, shape, self._half, xp, None if xp is np else current_device())
        self.nodes = self._levels[0].rows.size, self._levels[0].columns.size
        rows, columns = np.meshgrid(self._levels[0].rows, self._levels[0].columns, indexing="ij")
        self._places = np.stack([rows.ravel(), columns.ravel()], axis=1)
        self._patch, self._reach = options.patch, int(np.ceil(options.max_deviation / self._half))
        axes = self.grid.rows, self.grid.columns
        self._step = float(max(np.diff(axis.middles).mean() if axis.count > 1 else axis.size for axis in axes))
        self.sigma = max(_FINEST, smoothing_for(float(quality.signal_fraction(centred(image[None])[0])[0])))
        self._references, self._windows = self._prepared(image[None], None)

    def sizes(self, images: Array) -> list[Array]:
        """Images (n, Y, X) as they are compared, at full size and perhaps at half."""
        images = smoothed(centred(images)[0], self.sigma)
        return [images, halved(images)] if self._half == 2 else [images]

    def _prepared(self, images: Array, like: list[FieldReference] | None) -> tuple[list[FieldReference], list[Windows]]:
        """References as frames are compared with them; `like` others that differ by little, to save time."""
        sizes = self.sizes(images)
        known = [None] * len(sizes) if like is None else like
        references = [FieldReference(*each) for each in zip(sizes, self._levels, known, strict=True)]
        return references, [
            Windows(image, self.grid.firsts // self._half, self._patch // self._half, self._reach)
            for image in sizes[-1]
        ]

    def measured(self, frames: Array, first: int, shifts: NDArray[np.float64]) -> FittedPatches:
        """Measure consecutive frames (T, Y, X), which rigid shifts (T, 2) bring near; NaN where there is no shift."""
        count, patches = len(frames), len(self.grid.middles)
        field, sigma = np.full((2, count, 2, *self.nodes), np.nan)
        nothing = np.full((count, patches), np.nan)
        found = FittedPatches(field, sigma, np.full(count, np.nan), np.zeros(nothing.shape, dtype=bool), nothing)
        known = np.flatnonzero(np.isfinite(shifts).all(axis=1))
        size = self._together if self._xp is not np or self._own is not None else max(known.size, 1)
        for rows in (known[block] for block in in_blocks(known.size, size)):
            references, windows = self._references, self._windows * len(rows)
            if self._own is not None:
                images = self._xp.stack([self._own(first + t) for t in rows.tolist()])
                references, windows = self._prepared(images, references)
            sizes, moved = self.sizes(frames[self._xp.asarray(rows)]), -shifts[rows]
            match, trusted = self._matched(windows, sizes[-1], moved)
            start = self._fields_through(match, trusted, moved).transpose(0, 2, 1).reshape(-1, 2, *self.nodes)
            fit = fitted(references, sizes, start, moved)
            found.put(rows, FittedPatches(*fit, trusted, match.significance))
        return found

    def _matched(
        self, windows: Sequence[Windows], images: Array, starts: Floats
    ) -> tuple[WindowMatch, NDArray[np.bool_]]:
        """Match patches of images (T, y, x), displaced by `starts` (T, 2): (T, n) each, and which are trusted."""
        frames, middles = len(images), self.grid.middles
        whole = np.rint(starts / self._half).astype(np.intp)
        offsets = np.broadcast_to(whole[:, None], (frames, *middles.shape))
        found = match_windows([Search(*each) for each in zip(windows, images, offsets, strict=True)]).arrays
        shaped = {name: values.reshape(frames, len(middles), *values.shape[1:]) for name, values in found.items()}
        match = WindowMatch(**shaped)
        return match, self.trusted(match)

    def _fields_through(self, match: WindowMatch, trusted: NDArray[np.bool_], rigid: Floats) -> Floats:
        """Displacements (T, m, 2) at the nodes, smooth through trusted patches; a frame's own without any."""
        score = np.clip(match.score, 0.01, 0.99)
        weights = np.where(trusted, score**2 / (1 - score**2), 0.0)
        found, reach = np.repeat(rigid[:, None], len(self._places), axis=1), _FIELD_REACH * self._step
        for t in np.flatnonzero(trusted.any(axis=1)):
            shift = self._half * match.shift[t]
            found[t] = local_linear(self.grid.middles, shift, weights[t], self._places, reach)
        return found

    def by_chance(self) -> float:
        """Score that patches of smoothed noise hardly reach."""
        alike = 1 + 4 * np.pi * (self.sigma / self._half) ** 2
        return float(_DEVIATIONS * np.sqrt(alike) * self._half / self._patch)

    def trusted(self, match: WindowMatch) -> NDArray[np.bool_]:
        """Which patches (T, n) by themselves were found where their neighbours are."""
        stands_out = ~(match.false_alarm > MAX_FALSE_ALARM) & (match.score > self.by_chance())
        good = np.isfinite(match.shift).all(axis=2) & ~match.on_edge & stands_out
        shape = len(good), *self.grid.shape
        away = normalised_median(self._half * match.shift.reshape(*shape, 2), good.reshape(shape), noise=0.5)
        return np.asarray(good & (away.reshape(good.shape) <= OUTLIER))
