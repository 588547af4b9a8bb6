"""What the tiles of frames in device memory say about their shifts, from sums over each: one launch for all frames."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import empty
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.download import Download
from xcorr_app.gpu.runtime.launch import WARP, Launch

MAX_TILES = 2048
"""Of a frame: each is compared with every other one."""
_THREADS = 256
_KEPT = 18
_SUMS, _NUMBERS = 27, 6


class Limits(NamedTuple):
    """Where a tile or a frame says something: macros of the kernel by their names in lower case."""

    unshared: float
    deviations: float
    min_shown: float
    alike: float
    min_offset: float
    spread: float
    farthest: float
    fewest_told: int
    nearly_all: float
    min_chi_squared: float
    ridge: float
    fewest_tiles: int
    correlated: float
    """Bins that the noise of one reaches where they are smoothed."""


@functools.lru_cache(maxsize=64)
def tile_verdict_launch(frames: int, limits: Limits) -> Launch:
    """Choose the launch for so many frames."""
    defines: dict[str, str | int] = {name.upper(): repr(value) for name, value in limits._asdict().items()}
    shared_bytes = 8 * ((_THREADS // WARP + 1) * _SUMS + _NUMBERS + 3 * _NUMBERS**2 + 4 * 5)
    return Launch("peaks/tile_verdict", defines, frames, _THREADS, shared_bytes)


@dataclass(frozen=True)
class Verdict:
    """What the tiles of n frames say, on the host."""

    tiles: NDArray[np.float32]
    """(n, rows, columns) 1 where one agrees, 0 where it differs, NaN where it cannot tell."""
    inlier_fraction: NDArray[np.float64]
    """(n,) share of them that resembles the reference."""
    edges: NDArray[np.float64]
    """(n,) pixels by which the edge moves against the centre."""
    noise: NDArray[np.float64]
    """(n,) variance of the noise of a bin, of frame or reference, whichever has more."""


def started_verdict(
    sums: Any,
    places: Any,
    offsets: Any,
    levels: tuple[Any, Any],
    shape: tuple[int, int],
    size: int,
    limits: Limits,
    *,
    smoothed: bool,
) -> Callable[[], Verdict]:
    """Begin to say which tiles agree; what is returned waits.

    By their `sums` (13, n, rows, columns) of :func:`xcorr_app.gpu.peaks.tile_sums.tile_sums`.

    Parameters
    ----------
    places, offsets
        Shifts (n, 2), int32, and what is left of them beyond whole pixels, float64; NaN where there is none.
    levels
        Of frames and references, by :func:`xcorr_app.gpu.peaks.tile_sums.tile_levels`.
    shape, size
        Rows and columns of the images, and of a tile, in pixels.
    smoothed
        Whether bins were smoothed before they were added up.
    """
    _, count, rows, columns = sums.shape
    tiles = rows * columns
    found, workspace = empty((count, tiles + 3)), empty((count, tiles, _KEPT))
    arrays = sums, places, offsets, *levels, workspace, found
    numbers = count, levels[1].shape[0], *shape, size, rows, columns, int(smoothed)
    start(tile_verdict_launch(count, limits), arrays, numbers)

    arriving = Download(found)

    def finished() -> Verdict:
        host = arriving()
        of_tiles = host[:, :tiles].astype(np.float32).reshape(count, rows, columns)
        return Verdict(of_tiles, host[:, tiles], host[:, tiles + 1], host[:, tiles + 2])

    return finished
