"""Scatter of the correlation's slope among tiles of frames in device memory: two launches for all frames."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import dense, empty, placed, to_host
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of

_WARPS = 4
_SUMS_OF_FRAME = 5


class TileGrid(NamedTuple):
    """Where tiles lie, in pixels: the arguments of the kernel."""

    rows: int
    columns: int
    height: int
    width: int
    first_row: int
    row_pitch: int
    left: int

    @property
    def tiles(self) -> int:
        """How many there are."""
        return self.rows * self.columns


@functools.lru_cache(maxsize=256)
def tile_products_launch(element: str, tiles: int) -> Launch:
    """Choose the launch for so many tiles of all frames, of a type as NumPy names it."""
    return Launch("peaks/tile_products", {"RIGHT_TYPE": INPUT_TYPES[element]}, ceil_div(tiles, _WARPS), _WARPS * WARP)


@functools.lru_cache(maxsize=256)
def tile_scatter_launch(frames: int) -> Launch:
    """Choose the launch for so many frames."""
    return Launch("peaks/tile_scatter", {}, ceil_div(frames, _WARPS), _WARPS * WARP)


def start_tile_products(frames: Any, factors: Any, grid: TileGrid, places: Any) -> Any:
    """Begin to sum frames (n, h, w) at whole shifts (n, 2), int32, over tiles: (n, tiles, 5) doubles.

    `factors` (3, m, rows, height, width), float32, are the smoothed references and their slopes; m is 1 or n.
    """
    count, height, width = frames.shape
    products = empty((count, grid.tiles, _SUMS_OF_FRAME))
    launch = tile_products_launch(name_of(frames.dtype), count * grid.tiles)
    arrays = dense(frames), factors, places, products
    start(launch, arrays, (count, height, width, factors.shape[1], *grid))
    return products


def tile_scatter(
    frames: Any,
    of_reference: tuple[Any, Any, Any],
    grid: TileGrid,
    peaks: NDArray[np.integer],
    offsets: NDArray[np.float64],
    *,
    plain: bool,
) -> NDArray[np.float64]:
    """Covariances (n, 2, 2) of frames (n, h, w) at whole shifts (n, 2), `offsets` less than their shifts.

    Those are (n, 3): the third is how many times as high planes are at their peaks as at whole shifts. Of the
    references, m of them, 1 or n: the smoothed images and their slopes on the tiles (3, m, rows, height, width),
    float32; their sums (18, m, rows, columns), float64; the variances of their white noise, and what a pixel of it adds
    to sums of slopes with slopes along rows and along columns (3, m), float64. `plain` ones are not smoothed.
    """
    count, height, width = frames.shape
    factors, sums, noise = of_reference
    scatters, places = empty((count, 2, 2)), placed(np.ascontiguousarray(peaks, dtype=np.int32))
    products = start_tile_products(frames, factors, grid, places)
    numbers = count, height, width, factors.shape[1], grid.tiles, grid.height * grid.width, int(plain)
    start(tile_scatter_launch(count), (products, sums, noise, places, placed(offsets), scatters), numbers)
    found: NDArray[np.float64] = to_host(scatters)
    return found
