"""What standard errors need of reference images in device memory: one launch for all of them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from xcorr_app.gpu.peaks.tile_scatter import TileGrid
from xcorr_app.gpu.runtime.arrays import dense, empty
from xcorr_app.gpu.runtime.binder import null_pointer, start
from xcorr_app.gpu.runtime.launch import WARP, Launch

_THREADS = 128
_KINDS, _FACTORS = 18, 3


@functools.lru_cache(maxsize=256)
def reference_tiles_launch(tiles: int) -> Launch:
    """Choose the launch for so many tiles of all images."""
    return Launch("peaks/reference_tiles", {}, tiles, _THREADS, 8 * _KINDS * (_THREADS // WARP))


def reference_tiles(images: Any, means: Any, strips: Any, grid: TileGrid) -> tuple[Any, Any]:
    """Factors (3, n, rows, height, width) and sums (18, n, rows, columns) of images (n, h, w) with `means` (n,).

    As `tile_scatter` takes them, float32 and float64; the means are float64. The smoothed `strips`
    (n, rows, height + 4, width + 4), without means, are those of the tiles with two pixels around them; None where the
    images are not smoothed.
    """
    count, height, width = images.shape
    factors = empty((_FACTORS, count, grid.rows, grid.height, grid.columns * grid.width), np.float32)
    sums = empty((_KINDS, count, grid.rows, grid.columns))
    smoothed = null_pointer() if strips is None else dense(strips)
    arrays = dense(images), means, smoothed, factors, sums
    launch = reference_tiles_launch(count * grid.rows * grid.columns)
    start(launch, arrays, (int(strips is not None), count, height, width, *grid))
    return factors, sums
