"""What tells which tiles of frames in device memory agree with their reference: bins, and sums over tiles of them."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.peaks.noise_sums import mean_products, noise_sums_launch
from xcorr_app.gpu.peaks.row_sums import start_row_sums
from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of

__all__ = [
    "moments_and_products",
    "tile_bins",
    "tile_bins_launch",
    "tile_sums",
    "tile_sums_launch",
]

_WARPS = 4
_THREADS = 256
_KINDS = 13
_NOISE_SUMS = 14


def tile_bins_launch(images: int, element: str, bins: int) -> Launch:
    """Choose the launch for images of a type, as NumPy names it, that have so many bins."""
    return Launch("peaks/tile_bins", {"RIGHT_TYPE": INPUT_TYPES[element]}, images * ceil_div(bins, _THREADS), _THREADS)


def tile_sums_launch(tiles: int) -> Launch:
    """Choose the launch for so many tiles of all frames."""
    return Launch("peaks/tile_sums", {}, ceil_div(tiles, _WARPS), _WARPS * WARP)


def moments_and_products(
    stacks: tuple[Any, ...], period: int, noise_period: int
) -> list[tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]]:
    """Means (n,) and variances (n,) of every `period`-th row of the images of each stack, and `mean_products` (n, 7).

    The latter of four rows in every `noise_period`. The device is waited for once.
    """
    cupy = importlib.import_module("cupy")
    launches = [
        noise_sums_launch(stack.shape[0], stack.shape[1] // noise_period * stack.shape[2], name_of(stack.dtype))
        for stack in stacks
    ]
    sizes = [
        (2 * stack.shape[0] * ceil_div(stack.shape[1], period), _NOISE_SUMS * launch.blocks)
        for stack, launch in zip(stacks, launches, strict=True)
    ]
    ends = np.cumsum(sizes).reshape(-1, 2).tolist()
    found = cupy.empty(ends[-1][-1])
    for stack, launch, size, (middle, end) in zip(stacks, launches, sizes, ends, strict=True):
        _, height, width = stack.shape
        images, numbers = cupy.ascontiguousarray(stack), (height, width, noise_period, height // noise_period)
        start_row_sums(images, found[middle - size[0] : middle], period)
        start(launch, (images, found[middle:end]), (*numbers, *launch.extra))
    host, told = to_host(found), []
    for stack, size, (middle, end) in zip(stacks, sizes, ends, strict=True):
        count, height, width = stack.shape
        pixels = ceil_div(height, period) * width
        mean, power = (host[middle - size[0] : middle].reshape(count, -1, 2).sum(axis=1) / pixels).T
        sums = host[middle:end].reshape(count, -1, _NOISE_SUMS)
        told.append((mean, power - mean * mean, mean_products(sums, height // noise_period, width)))
    return told


def tile_bins(images: Any, shifts: NDArray[np.integer], level: NDArray[np.float64], gain: NDArray[np.float64]) -> Any:
    """Means (n, h // 2, w // 2) of 2 x 2 pixels of images (n, h, w) moved by whole pixels (n, 2), float32.

    Less the `level` and times the `gain` (n,) of each; pixels beyond an image count as its level.
    """
    cupy = importlib.import_module("cupy")
    count, height, width = images.shape
    bins = cupy.empty((count, height // 2, width // 2), np.float32)
    launch = tile_bins_launch(count, name_of(images.dtype), bins.shape[1] * bins.shape[2])
    places = cupy.asarray(np.ascontiguousarray(shifts, dtype=np.int32))
    arrays = cupy.ascontiguousarray(images), places, cupy.asarray(np.stack([level, gain], axis=1)), bins
    start(launch, arrays, (height, width, launch.blocks // count))
    return bins


def tile_sums(
    frames: Any, references: Any, offsets: NDArray[np.float64], size: int, tiles: tuple[int, int]
) -> Any:
    """Sums (13, n, rows, columns) over tiles of `size` x `size` bins of frames (n, h, w) and references (1 or n, h, w).

    Both are float32, and the sums stay on the device; `offsets` (n, 2) are what is left of shifts beyond whole pixels. The kinds are those of
    :mod:`xcorr_app.registration.tiles`.
    """
    cupy = importlib.import_module("cupy")
    count, height, width = frames.shape
    sums = cupy.empty((_KINDS, count, *tiles))
    arrays = (
        cupy.ascontiguousarray(frames),
        cupy.ascontiguousarray(references),
        cupy.asarray(np.ascontiguousarray(offsets)),
        sums,
    )
    shared = int(references.shape[0] == 1)
    start(tile_sums_launch(count * tiles[0] * tiles[1]), arrays, (count, shared, height, width, size, *tiles))
    return sums
