"""What tells which tiles of frames in device memory agree with their reference: bins, and sums over tiles of them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from xcorr_app.gpu.peaks.noise_sums import noise_sums_launch
from xcorr_app.gpu.peaks.row_sums import start_row_sums
from xcorr_app.gpu.runtime.arrays import dense, empty
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of

_WARPS = 4
_THREADS = 256
_KINDS = 13
_NOISE_SUMS = 14


@functools.lru_cache(maxsize=256)
def tile_bins_launch(images: int, element: str, bins: int) -> Launch:
    """Choose the launch for images of a type, as NumPy names it, that have so many bins."""
    return Launch("peaks/tile_bins", {"RIGHT_TYPE": INPUT_TYPES[element]}, images * ceil_div(bins, _THREADS), _THREADS)


@functools.lru_cache(maxsize=256)
def tile_sums_launch(tiles: int) -> Launch:
    """Choose the launch for so many tiles of all frames."""
    return Launch("peaks/tile_sums", {}, ceil_div(tiles, _WARPS), _WARPS * WARP)


@functools.lru_cache(maxsize=256)
def tile_levels_launch(images: int, min_clean: float) -> Launch:
    """Choose the launch for so many images, of which at least such a fraction is taken for clean."""
    return Launch("peaks/tile_levels", {"MIN_CLEAN": repr(min_clean)}, ceil_div(images, _WARPS), _WARPS * WARP)


def tile_levels(frames: Any, references: Any, period: int, noise_period: int, min_clean: float) -> tuple[Any, Any]:
    """Level, gain and noise of a bin (n, 3) of frames (n, h, w), and of references (m, h, w), on the device.

    By every `period`-th row of each image; noise by four rows in every `noise_period`.
    """
    height, width = frames.shape[1:]
    split, count = frames.shape[0], frames.shape[0] + references.shape[0]
    rows, groups = ceil_div(height, period), height // noise_period
    parts = noise_sums_launch(1, groups * width, name_of(frames.dtype)).extra[0]
    of_rows, of_noise = empty((count, rows, 2)), empty((count, parts, _NOISE_SUMS))
    for stack, part in ((frames, slice(0, split)), (references, slice(split, count))):
        images = dense(stack)
        start_row_sums(images, of_rows[part], period)
        launch = noise_sums_launch(stack.shape[0], groups * width, name_of(stack.dtype))
        start(launch, (images, of_noise[part]), (height, width, noise_period, groups, parts))
    levels = empty((count, 3))
    start(tile_levels_launch(count, min_clean), (of_rows, of_noise, levels), (count, rows, width, groups, parts))
    return levels[:split], levels[split:]


def tile_bins(images: Any, places: Any, levels: Any) -> Any:
    """Means (n, h // 2, w // 2) of 2 x 2 pixels of images (n, h, w) moved by whole pixels, `places` (n, 2), int32.

    Float32, less the level and times the gain of each, as `tile_levels` has them; pixels beyond an image count as its
    level.
    """
    count, height, width = images.shape
    bins = empty((count, height // 2, width // 2), np.float32)
    launch = tile_bins_launch(count, name_of(images.dtype), bins.shape[1] * bins.shape[2])
    start(launch, (dense(images), places, levels, bins), (height, width, launch.blocks // count))
    return bins


def tile_sums(frames: Any, references: Any, offsets: Any, size: int, tiles: tuple[int, int]) -> Any:
    """Sums (13, n, rows, columns) over tiles of `size` x `size` bins of frames (n, h, w) and references (1 or n, h, w).

    Both are float32, and the sums stay on the device; `offsets` (n, 2) are what is left of shifts beyond whole pixels.
    The kinds are those of :mod:`xcorr_app.registration.parts.tile_bins`.
    """
    count, height, width = frames.shape
    sums = empty((_KINDS, count, *tiles))
    arrays = (
        dense(frames),
        dense(references),
        offsets,
        sums,
    )
    shared = int(references.shape[0] == 1)
    start(tile_sums_launch(count * tiles[0] * tiles[1]), arrays, (count, shared, height, width, size, *tiles))
    return sums
