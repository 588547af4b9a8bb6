"""Scatter of the correlation's slope among tiles of frames in device memory: one launch for all frames."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.launch import WARP, Launch
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of

__all__ = ["TileGrid", "tile_scatter", "tile_scatter_launch"]

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


def tile_scatter_launch(element: str, frames: int, tiles: int) -> Launch:
    """Choose the launch for frames of a type, as NumPy names it."""
    shared_bytes = 8 * _SUMS_OF_FRAME * tiles
    return Launch("peaks/tile_scatter", {"RIGHT_TYPE": INPUT_TYPES[element]}, frames, _WARPS * WARP, shared_bytes)


def tile_scatter(
    frames: Any,
    of_reference: tuple[Any, Any, Any],
    grid: TileGrid,
    peaks: NDArray[np.integer],
    offsets: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Covariances (n, 2, 2) of frames (n, h, w) at whole shifts (n, 2), `offsets` less than their shifts.

    Of the references, m of them, 1 or n: the smoothed images and their slopes on the tiles (3, m, rows, height, width),
    float32; their sums (12, m, rows, columns), float64; the variances (m,) of their white noise, float64.
    """
    cupy = importlib.import_module("cupy")
    count, height, width = frames.shape
    scatters = cupy.empty((count, 2, 2))
    places = cupy.asarray(np.ascontiguousarray(peaks, dtype=np.int32))
    factors = of_reference[0]
    arrays = cupy.ascontiguousarray(frames), *of_reference, places, cupy.asarray(offsets), scatters
    launch = tile_scatter_launch(name_of(frames.dtype), count, grid.rows * grid.columns)
    start(launch, arrays, (height, width, factors.shape[1], *grid))
    found: NDArray[np.float64] = scatters.get()
    return found
