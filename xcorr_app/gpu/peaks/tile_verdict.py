"""What the tiles of frames in device memory say about their shifts, from sums over each: one launch for all frames."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.launch import WARP, Launch

__all__ = ["MOST_TILES", "Limits", "tile_verdict", "tile_verdict_launch"]

MOST_TILES = 2048
"""Of a frame: each is compared with every other one."""
_THREADS = 256
_KEPT = 4
_SUMS, _NUMBERS = 27, 6


class Limits(NamedTuple):
    """Where a tile or a frame says something: macros of the kernel by their names in lower case."""

    unshared: float
    deviations: float
    least_shown: float
    alike: float
    least_offset: float
    spread: float
    fewest_told: int
    least_chi_squared: float
    ridge: float
    fewest_tiles: int


def tile_verdict_launch(frames: int, limits: Limits) -> Launch:
    """Choose the launch for so many frames."""
    defines: dict[str, str | int] = {name.upper(): repr(value) for name, value in limits._asdict().items()}
    shared_bytes = 8 * ((_THREADS // WARP + 1) * _SUMS + _NUMBERS)
    return Launch("peaks/tile_verdict", defines, frames, _THREADS, shared_bytes)


def tile_verdict(
    sums: Any,
    shifts: NDArray[np.integer],
    noise: NDArray[np.float64],
    correlated: float,
    shape: tuple[int, int],
    size: int,
    limits: Limits,
) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64]]:
    """Which tiles agree (n, rows, columns), what share of them resembles the reference (n,), edge offsets (n,).

    By their `sums` (13, n, rows, columns) as :mod:`xcorr_app.gpu.peaks.tile_sums` leaves them, the whole `shifts`
    (n, 2), the variance (n,) of the `noise` of a bin, NaN where there is no shift, of which that of so many bins is
    `correlated`; of images of a `shape` and tiles of `size` pixels.
    """
    cupy = importlib.import_module("cupy")
    _, count, rows, columns = sums.shape
    tiles = rows * columns
    found, workspace = cupy.empty((count, tiles + 2)), cupy.empty((count, tiles, _KEPT))
    places, noises = cupy.asarray(np.ascontiguousarray(shifts, np.int32)), cupy.asarray(np.append(noise, correlated))
    arrays = sums, places, noises, noises[count:], workspace, found
    start(tile_verdict_launch(count, limits), arrays, (count, *shape, size, rows, columns))
    host: NDArray[np.float64] = to_host(found)
    return host[:, :tiles].astype(np.float32).reshape(count, rows, columns), host[:, tiles], host[:, tiles + 1]
