"""Patches matched and fields fitted for a chunk of frames at once on a device, with one wait for what was found."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.field.launches import patch_match_launch
from xcorr_app.gpu.field.patches import PatchGrid, SearchedPatches, match_patches
from xcorr_app.gpu.field.run import summary_of
from xcorr_app.gpu.runtime.arrays import Array, to_host
from xcorr_app.registration.field.window_match import Windows
from xcorr_app.registration.patches.device_fit import DeviceFit, room_of
from xcorr_app.registration.patches.field_fit import FieldReference
from xcorr_app.registration.patches.field_nodes import Nodes
from xcorr_app.registration.patches.fitted_fields import FittedFields
from xcorr_app.registration.patches.patch_match import PatchMatcher, PatchSearch
from xcorr_app.registration.standard_error.significance import MAX_FALSE_ALARM, false_alarm

Floats = NDArray[np.float64]

_CELLS_A_STEP = 8
"""Steps of a cell at which heights that chance reaches are tabled."""
_HALVINGS = 60


class DevicePatches:
    """Measures chunks of frames whose patches, and nodes of fields, are those of a matcher."""

    def __init__(self, matcher: PatchMatcher, levels: Sequence[Nodes], xp: Any) -> None:
        self._matcher, self._xp = matcher, xp
        self._fit = DeviceFit(levels, xp)
        self.fits = self._fit.fits
        self._nodes = levels[0].rows.size, levels[0].columns.size
        shifts = 2 * (matcher.reach + 1) + 1
        self._fits_kernel = patch_match_launch(1, matcher.side, shifts, room_bytes=room_of(xp)) is not None
        self._grid = PatchGrid(
            matcher.grid.shape,
            matcher.smaller,
            matcher.reach,
            xp.asarray(np.ascontiguousarray(matcher.firsts.astype(np.int32))),
            xp.asarray(matcher.middles),
            xp.asarray(matcher.places),
            xp.asarray(np.array([matcher.step, matcher.field_reach])),
        )
        self._kept: tuple[Windows, SearchedPatches] | None = None

    def measured(
        self,
        windows: Sequence[Windows],
        references: Sequence[Sequence[FieldReference]],
        sizes: Sequence[Array],
        sigma: float,
        moved: Floats,
    ) -> FittedFields:
        """Measure frames (T, Y, X), given at each size under a Gaussian, which are displaced by `moved` (T, 2).

        `windows` and `references`, those at each size, are one for all frames or one for each.
        """
        # While patches are matched on the device, the host finds modes.
        self._fit.see(references[0][0], moved)
        if self._fits_kernel:
            records, trusted, starts = match_patches(
                sizes[-1], self._searched(windows), self._grid, self._limits(sigma), _CELLS_A_STEP, moved
            )
            significance = records[:, :, 3]
        else:
            trusted, significance, starts = self._matched_by_planes(windows, sizes[-1], sigma, moved)
        starts = starts.reshape(len(moved), 2, *self._nodes)
        by_level = list(zip(*references, strict=True))
        state = self._fit.fitted(by_level, sizes, starts, moved)
        summary = to_host(summary_of(state))
        return FittedFields(
            to_host(state.fields),
            to_host(state.sigma),
            to_host(state.scores),
            to_host(trusted).astype(bool),
            to_host(significance).copy(),
            summary[:, :3],
            summary[:, 3:],
        )

    def _searched(self, windows: Sequence[Windows]) -> SearchedPatches:
        xp = self._xp
        if len(windows) > 1:
            parts = [(each.values(slice(None)), each.power, each.flat) for each in windows]
            values, power, flat = (xp.stack(each) for each in zip(*parts, strict=True))
            return SearchedPatches(xp.ascontiguousarray(values), power, flat.astype(np.int32))
        one = windows[0]
        # Of all frames, or of the only one of a chunk that has its own.
        if self._kept is None or self._kept[0] is not one:
            values = xp.ascontiguousarray(one.values(slice(None)))
            self._kept = one, SearchedPatches(values, one.power, one.flat.astype(np.int32))
        return self._kept[1]

    def _limits(self, sigma: float) -> Array:
        heights = heights_by_chance((2 * (self._matcher.reach + 1) + 1) ** 2)
        return self._xp.asarray(np.concatenate([[self._matcher.by_chance(sigma)], heights]))

    def _matched_by_planes(
        self, windows: Sequence[Windows], images: Array, sigma: float, moved: Floats
    ) -> tuple[Any, Any, Any]:
        """Patches that no block holds, by planes in memory."""
        windows = list(windows) * len(images) if len(windows) == 1 else windows
        searches = [PatchSearch(*each) for each in zip(windows, images, [sigma] * len(images), moved, strict=True)]
        matches = self._matcher.matched(searches)
        starts = [self._matcher.field_through(*each) for each in zip(matches, moved, strict=True)]
        return (
            np.stack([match.trusted for match in matches]),
            np.stack([match.significance for match in matches]),
            self._xp.asarray(np.ascontiguousarray(np.stack(starts).transpose(0, 2, 1))),
        )


@functools.cache
def heights_by_chance(values: int) -> Floats:
    """Heights of a peak that chance hardly reaches in a plane of so many values: see `significance.false_alarm`.

    For planes of 0, 1/8, 2/8 ... cells, up to the most that such a plane can have.
    """
    cells = np.arange(_CELLS_A_STEP * 2 * values + 2) / _CELLS_A_STEP
    low, high = np.zeros(cells.size), np.full(cells.size, 1e4)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        likely = false_alarm(middle, cells, np.full(cells.size, values)) > MAX_FALSE_ALARM
        low, high = np.where(likely, middle, low), np.where(likely, high, middle)
    return high
