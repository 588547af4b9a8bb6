"""Patches of frames matched with those of a reference, and one smooth field through all, for chunks of frames."""

from __future__ import annotations

import functools
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
from xcorr_app.registration.field.window_match import Windows
from xcorr_app.registration.motion.smoothed_frames import finite, sizes_of
from xcorr_app.registration.patches.device_patches import DevicePatches
from xcorr_app.registration.patches.field_fit import FieldReference, fitted
from xcorr_app.registration.patches.field_nodes import Nodes
from xcorr_app.registration.patches.fitted_fields import FittedFields
from xcorr_app.registration.patches.patch_match import PatchMatcher, PatchSearch
from xcorr_app.registration.patches.patch_references import References
from xcorr_app.registration.warping.grid import Grid, with_edges

DEFAULT_PATCH, DEFAULT_OVERLAP, DEFAULT_DEVIATION = 128, 0.5, 6.0
_SMALLEST = 16
"""Pixels a side of a patch at least."""
_HALVED_FROM = 64
"""Pixels a side from which patches are matched at half their size: the fit to all pixels follows."""
_SMOOTHING = ((0.97, 0.7), (0.7, 1.0), (0.35, 1.5), (0.0, 2.0))
"""Share of the variance that is no noise, and the sigma in pixels of the Gaussian that noisier images lie under."""


_MAX_OVERLAP = 0.9
"""Beyond, neighbours tell the same, and their number, which memory goes by, grows without end."""


@dataclass(frozen=True)
class PatchOptions:
    """How frames are cut, checked once."""

    patch: int = DEFAULT_PATCH
    overlap: float = DEFAULT_OVERLAP
    max_deviation: float = DEFAULT_DEVIATION

    def __post_init__(self) -> None:
        if not isinstance(self.patch, (int, np.integer)) or self.patch < _SMALLEST:
            raise ArgumentError(f"patch is {self.patch!r}: give {_SMALLEST} pixels or more")
        if not is_number(self.overlap) or not 0 <= self.overlap <= _MAX_OVERLAP:
            raise ArgumentError(f"patch_overlap is {self.overlap!r}: it is a fraction from 0 to {_MAX_OVERLAP}")
        if not is_number(self.max_deviation) or not 0 < self.max_deviation <= self.patch:
            raise ArgumentError(f"max_deviation is {self.max_deviation!r}: give pixels, at most a patch")

    @property
    def half(self) -> int:
        """Factor by which images are made smaller for matching."""
        return 2 if self.patch >= _HALVED_FROM else 1


@dataclass(frozen=True)
class PreparedReference:
    """A reference as frames are compared with it."""

    sigma: float
    """Pixels of the Gaussian that its noise calls for."""
    levels: list[FieldReference]
    """At full size and perhaps at half."""
    windows: Windows
    """Its patches at the smallest size."""


@functools.lru_cache(maxsize=8)
def _levels_of(grid: Grid, shape: tuple[int, int], half: int, xp: Any, _device: int | None) -> tuple[Nodes, ...]:
    """Nodes of a grid in frames at full size and perhaps at half, kept for the next call."""

    def levels() -> tuple[Nodes, ...]:
        nodes = Nodes(with_edges(grid.rows), with_edges(grid.columns), shape, xp)
        return (nodes, nodes.halved(xp)) if half == 2 else (nodes,)

    return constants(xp, levels)


class PatchFit:
    """Measures frames against a reference."""

    def __init__(self, shape: tuple[int, int], references: References, options: PatchOptions, xp: Any) -> None:
        self.grid = Grid.of(shape, options.patch, options.patch * (1 - options.overlap))
        self._half, self._xp = options.half, xp
        self._levels = _levels_of(self.grid, shape, self._half, xp, None if xp is np else current_device())
        self.nodes = self._levels[0]
        places = np.meshgrid(self.nodes.rows, self.nodes.columns, indexing="ij")
        nodes = np.stack([values.ravel() for values in places], axis=1)
        self._matcher = PatchMatcher(self.grid, nodes, options.patch, options.max_deviation, self._half)
        self._references = references
        self._shared = self.prepared(references.image)
        there = None if xp is np else DevicePatches(self._matcher, self._levels, xp)
        self._device = there if there is not None and there.fits else None

    def prepared(self, image: Array, like: PreparedReference | None = None) -> PreparedReference:
        """A reference as frames are compared with it; `like` another that differs by little, to save time."""
        sigma = self._smoothing(image) if like is None else like.sigma
        sizes = [each[0] for each in sizes_of(image[None], sigma, self._half)]
        known = [None] * len(sizes) if like is None else like.levels
        levels = [FieldReference(*each) for each in zip(sizes, self._levels, known, strict=True)]
        return PreparedReference(sigma, levels, self._matcher.windows(sizes[-1]))

    @staticmethod
    def _smoothing(image: Array) -> float:
        clean = float(quality.clean_fraction(finite(image)[None])[0])
        return next(sigma for above, sigma in _SMOOTHING if clean >= above)

    def measured(self, frames: Array, first: int, shifts: NDArray[np.float64]) -> FittedFields:
        """Measure consecutive frames (T, Y, X), which rigid shifts (T, 2) bring near; NaN where there is no shift."""
        known = np.flatnonzero(np.isfinite(shifts).all(axis=1))
        if not known.size:
            return self._none(len(frames))
        if known.size < len(frames):
            return self.measured_near(frames[self._xp.asarray(known)], known + first, shifts[known]).among(
                len(frames), known
            )
        return self.measured_near(frames, known + first, shifts)

    def measured_near(self, frames: Array, numbers: NDArray[np.intp], shifts: NDArray[np.float64]) -> FittedFields:
        """Measure frames of such `numbers` (T,), all of which have a shift."""
        if self._references.shared:
            references = [self._shared]
        else:
            references = [self.prepared(self._references.of(t), self._shared) for t in numbers.tolist()]
        sizes = sizes_of(frames, self._shared.sigma, self._half)
        if self._device is not None:
            return self._device.measured(
                [each.windows for each in references],
                [each.levels for each in references],
                sizes,
                self._shared.sigma,
                -shifts,
            )
        references = references * len(frames) if self._references.shared else references
        searches = [
            PatchSearch(reference.windows, image, reference.sigma, -shift)
            for reference, image, shift in zip(references, sizes[-1], shifts, strict=True)
        ]
        fits, matches = [], self._matcher.matched(searches)
        for t, (reference, match, shift) in enumerate(zip(references, matches, shifts, strict=True)):
            start = self._matcher.field_through(match, -shift)
            start = start.T.reshape(2, self.nodes.rows.size, self.nodes.columns.size)
            fits.append(fitted(reference.levels, [size[t] for size in sizes], start, -shift))
        return FittedFields.of(fits, matches)

    def _none(self, count: int) -> FittedFields:
        size = self.nodes.rows.size, self.nodes.columns.size
        return FittedFields.nothing(count, size, self.grid.shape[0] * self.grid.shape[1])
