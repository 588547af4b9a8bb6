"""Does the frame move as one? Which tiles of it agree with the shift, and which move otherwise.

A frame moved by its shift shows the reference. In each tile (sums over 3 x 3 of them, binomial weights) the two are
compared: what they do not share, beyond what their noise accounts for and a small displacement of its own explains,
against what they show; and that displacement against its standard error (least squares on the slopes of the
reference: Lucas and Kanade 1981). Both are looked at in bins of 2 x 2 pixels, smoothed where they are noisy. A frame
that is brighter or darker than the reference, all over or in places, agrees all the same.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.gpu.peaks.tile_sums import tile_bins, tile_levels, tile_sums
from xcorr_app.gpu.peaks.tile_verdict import MAX_TILES, Verdict, started_verdict
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of
from xcorr_app.registration.parts.tile_agreement import CORRELATED, LIMITS, NOISY, SIGMA, edge_offsets, judged
from xcorr_app.registration.parts.tile_bins import (
    MIN_CLEAN,
    SAMPLED,
    covered_bins,
    covered_by,
    standard,
    sums_over_tiles,
)
from xcorr_app.registration.quality import NOISE_PERIOD
from xcorr_app.registration.stack.prefilter import Prefilter

_TILES = 16
"""Tiles along the shorter axis, where they are not smaller than `_MIN_TILE_SIDE` pixels."""
_MIN_TILE_SIDE, _MAX_TILE_SIDE = 12, 64
_MIN_TILES = 4
"""Tiles along an axis below which there is no map."""
_SMOOTHING = Prefilter("gaussian", (SIGMA,))


@dataclass(frozen=True)
class Grid:
    """Square tiles over an image, an even number of pixels each; rows and columns beyond the last are left out."""

    shape: tuple[int, int]
    """Rows and columns of the image."""

    @functools.cached_property
    def size(self) -> int:
        """Rows and columns of a tile."""
        size = min(max(min(self.shape) // _TILES, _MIN_TILE_SIDE), _MAX_TILE_SIDE)
        return size - size % 2

    @functools.cached_property
    def count(self) -> tuple[int, int]:
        """Tiles along rows and columns; (0, 0) where the image is too small to ask."""
        rows, columns = (n // self.size for n in self.shape)
        return (rows, columns) if min(rows, columns) >= _MIN_TILES else (0, 0)


@dataclass(frozen=True)
class TileTest:
    """What the tiles of n frames say about their shifts."""

    tiles: NDArray[np.float32]
    """(n, rows, columns) 1 where a tile agrees, 0 where it differs, NaN where it shows too little to tell or the frame
    does not cover it."""
    inlier_fraction: NDArray[np.float64]
    """(n,) share of those that can tell in which frame and reference resemble each other; NaN where few can."""
    edges: NDArray[np.float64]
    """(n,) pixels by which turning, scale and shear move the edge against the centre; 0 where chance may do as much."""


Judged: TypeAlias = Callable[[], TileTest]
"""What their tiles say, for which a device is waited."""


def look(
    images: Array, frames: Array, shifts: NDArray[np.float64], covered: NDArray[np.bool_] | None = None
) -> TileTest:
    """Compare the tiles of the reference with each frame at its shift.

    Parameters
    ----------
    images : ndarray, shape (1 or n, h, w)
        Reference images.
    frames : ndarray, shape (n, h, w)
    shifts : ndarray of float64, shape (n, 2)
        To be added to each frame; NaN where there is none.
    covered : ndarray of bool, shape (n, rows, columns), optional
        Tiles that a frame shows, where it is more than shifted.
    """
    return started_look(images, frames, shifts, covered)()


def started_look(
    images: Array, frames: Array, shifts: NDArray[np.float64], covered: NDArray[np.bool_] | None = None
) -> Judged:
    """Begin with :func:`look`; what is returned waits for a device."""
    count, grid = int(frames.shape[0]), Grid((int(frames.shape[1]), int(frames.shape[2])))
    known: NDArray[np.bool_] = np.asarray(np.isfinite(shifts).all(axis=1))
    if not all(grid.count) or not known.any():
        nothing = TileTest(
            np.full((count, *grid.count), np.nan, dtype=np.float32), np.full(count, np.nan), np.zeros(count)
        )
        return lambda: nothing
    by_kernels = all(is_device_array(each) and name_of(each.dtype) in INPUT_TYPES for each in (frames, images))
    if covered is None and by_kernels and math.prod(grid.count) <= MAX_TILES:
        return _started_kernels(images, frames, np.where(known[:, None], shifts, np.nan), grid)
    shifts = np.where(known[:, None], shifts, 0.0)
    whole = np.rint(shifts).astype(np.intp)
    inside = array_namespace(frames).asarray(covered_bins(grid.shape, whole).astype(working_dtype(frames)))
    (f, of_frames), (g, of_reference) = standard(frames, whole, inside), standard(images)
    noise, correlated = of_frames + of_reference, 1.0
    if max(of_frames.max(), of_reference.max()) > NOISY:
        f, g = (_SMOOTHING(each) for each in (f, g))
        noise, correlated = noise / (2 * CORRELATED), CORRELATED
    sums = sums_over_tiles(f, g, shifts - whole, grid.size // 2, grid.count)
    covered = covered_by(grid.shape, grid.size, grid.count, whole) if covered is None else covered
    tiles, inlier_fraction = judged(sums, covered, (grid.size // 2) ** 2, noise, correlated, known)
    edges = edge_offsets(sums, covered & known[:, None, None], grid.size, grid.shape)
    return lambda: TileTest(tiles, inlier_fraction, edges)


def _started_kernels(images: Array, frames: Array, shifts: NDArray[np.float64], grid: Grid) -> Judged:
    """The same on a device, which is waited for once unless there is much noise."""
    xp, none, count = array_namespace(frames), np.zeros((images.shape[0], 2)), frames.shape[0]
    levels = tile_levels(frames, images, SAMPLED, min(NOISE_PERIOD, grid.shape[0]), MIN_CLEAN)
    whole = np.rint(shifts)
    # Brought to the device together: each array takes as long as a launch.
    moves = np.concatenate([np.nan_to_num(whole), none]).astype(np.int32)
    numbers = xp.asarray(np.concatenate([shifts - whole, moves.view(np.float64)], axis=None))
    offsets, places = numbers[: 2 * count].reshape(count, 2), numbers[2 * count :].view(np.int32).reshape(-1, 2)
    f, g = tile_bins(frames, places[:count], levels[0]), tile_bins(images, places[count:], levels[1])

    def verdict(f: Array, g: Array, *, smoothed: bool) -> Callable[[], Verdict]:
        sums = tile_sums(f, g, offsets, grid.size // 2, grid.count)
        return started_verdict(sums, places, offsets, levels, grid.shape, grid.size, LIMITS, smoothed=smoothed)

    started = verdict(f, g, smoothed=False)

    def finished() -> TileTest:
        found = started()
        if found.noise.max() > NOISY:
            found = verdict(_SMOOTHING(f), _SMOOTHING(g), smoothed=True)()
        return TileTest(found.tiles, found.inlier_fraction, found.edges)

    return finished
