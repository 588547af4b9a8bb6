"""What a few images in device memory leave once they are moved onto each other: four launches, an FFT and two waits.

Array operations take fifty launches, each of which costs the host as much time as a hundred frames. Sums are in double
precision.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import empty, placed
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.download import download
from xcorr_app.gpu.runtime.launch import WARP, Launch
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of

MOST = 8
"""Images that are looked at together."""
_THREADS = 128
_PAIRS = MOST * (MOST + 1) // 2
_BYTES = 8 * (_THREADS // WARP)
"""Of shared memory for each sum over a block."""


class LeftSums(NamedTuple):
    """Sums over half of a plane of frequencies; the first column counts by half but for the noise."""

    noise: float
    """Power of what is left, where there is noise alone."""
    shared: float
    """Power of the mean less that share of it, at low frequencies, and"""
    rest: float
    """power of what is left there."""
    products: float
    """Products of what is left of different images where these were."""


@functools.lru_cache(maxsize=64)
def aligned_bins_launch(images: int, height: int, element: str, side: int) -> Launch:
    """Choose the launch for parts of so many rows of bins of `side` pixels of images of a type, as NumPy names it."""
    defines: dict[str, str | int] = {"RIGHT_TYPE": INPUT_TYPES[element], "SIDE": side}
    return Launch("peaks/aligned_bins", defines, images * height, _THREADS, _BYTES)


@functools.lru_cache(maxsize=64)
def faded_images_launch(images: int, height: int, rim: float) -> Launch:
    """Choose the launch for images of so many rows, of whose sides such a share fades."""
    return Launch("peaks/faded_images", {"RIM": repr(rim)}, images * height, _THREADS, _BYTES + 8)


@functools.lru_cache(maxsize=64)
def aligned_products_launch(height: int, low: float) -> Launch:
    """Choose the launch for spectra of so many rows, of frequencies below `low` cycles per pixel."""
    return Launch("peaks/aligned_products", {"LOW": repr(low)}, height, _THREADS, _PAIRS * _BYTES)


@functools.lru_cache(maxsize=64)
def residual_launch(height: int, low: float, high: float, on_axis: float) -> Launch:
    """Choose the launch for spectra of so many rows; limits in cycles per pixel."""
    defines: dict[str, str | int] = {"LOW": repr(low), "HIGH": repr(high), "ON_AXIS": repr(on_axis)}
    return Launch("peaks/left_over", defines, height, _THREADS, len(LeftSums._fields) * _BYTES)


def faded_parts(stack: Any, places: Any, shape: tuple[int, int], side: int, rim: float) -> Any:
    """Parts (n, h, w) of images of a stack (T, Y, X), in bins of `side` pixels, less their means, faded at the rim.

    `places` (n, 7) on the device says of each image its number, the first row and column of the part, in bins, and two
    shifts for later: what moves it onto the others, and from there back.
    """
    count, (height, width) = len(places), shape
    parts, sums = empty((count, height, width), np.float32), empty((count, height))
    launch = aligned_bins_launch(count, height, name_of(stack.dtype), side)
    start(launch, (stack, places, parts, sums), (height, width, int(stack.shape[1]), int(stack.shape[2])))
    start(faded_images_launch(count, height, rim), (sums, parts), (height, width))
    return parts


def aligned_products(spectra: Any, places: Any, width: int, low: float) -> NDArray[np.float64]:
    """Products (n, n) of spectra (n, h, w // 2 + 1), single precision, of images of so many columns, once aligned."""
    count, height, _ = spectra.shape
    sums = empty((height, _PAIRS))
    start(aligned_products_launch(height, low), (spectra, places, sums), (count, height, width))
    upper = np.zeros((MOST, MOST))
    upper[np.triu_indices(MOST)] = download(sums).sum(axis=0)
    whole: NDArray[np.float64] = np.triu(upper, 1).T + upper
    return whole[:count, :count]


def left_sums(
    spectra: Any, places: Any, gains: NDArray[np.float64], width: int, limits: tuple[float, float, float]
) -> LeftSums:
    """Sums of what such spectra leave, each divided by its gain (n,); `limits` are those of `residual_launch`."""
    count, height, _ = spectra.shape
    sums = empty((height, len(LeftSums._fields)))
    numbers = (count, height, width)
    start(residual_launch(height, *limits), (spectra, places, placed(gains), sums), numbers)
    return LeftSums(*download(sums).sum(axis=0).tolist())
