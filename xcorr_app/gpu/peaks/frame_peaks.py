"""All that is said of frames in device memory by their peaks: three launches, and one wait for the device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.peaks.noise_sums import LAGS, started_noise_sums
from xcorr_app.gpu.peaks.tile_scatter import TileGrid, start_tile_products
from xcorr_app.gpu.runtime.arrays import empty
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.download import Download
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div

FITS = {"none": 0, "parabolic": 1, "quadratic": 2, "gaussian": 3}
"""Sub-pixel fits to 3 x 3 values, by their number in the kernel."""
_THREADS = 128
_WARPS = 4
_RECORD = 29
_WRITTEN = 48
_EXACT = 1 << 53
"""Integers up to which double precision holds every one."""
_MAX_BYTES = 2
_ROUNDING = 2.0**-50
"""Of the difference of two numbers, relative to them, that double precision makes at most; far below 64 bits."""


class Rules(NamedTuple):
    """By what a frame is judged: macros of the kernel by their names in lower case."""

    tie: float
    ambiguous: float
    fp16_error: float
    from_edge: int
    largest_offset: float
    lowest: float
    highest: float
    min_logarithm: float
    flat: float
    at_edges: float
    fewest_tiles: int


class OfReferences(NamedTuple):
    """Of m references, 1 or as many as frames, as :func:`xcorr_app.gpu.peaks.tile_scatter.tile_scatter` takes them."""

    factors: Any
    sums: Any
    noise: Any
    grid: TileGrid


@dataclass(frozen=True)
class FramePeaks:
    """What is said of n frames, on the host.

    Attributes
    ----------
    flat : array, shape (n,)
        Whether all pixels of a frame are equal; None where its sums do not tell.
    around : array, shape (n, 5, 5)
        As in :class:`xcorr_app.gpu.peaks.records.PeakRecords`.
    peak : array of int, shape (n, 2)
        Whole shifts.
    shift : array, shape (n, 2)
        Refined; NaN where no shift counts.
    score, ratio : array, shape (n,)
        At the shift; first peak over second.
    is_open : array, shape (n,)
        Whether a frame is better matched by other means.
    clean : array, shape (n,)
        Fraction of the variance that is not white noise.
    hessian : array, shape (n, 2, 2)
        Of the peak.
    quartic : array, shape (n, 2)
        Fourth over second derivative of the logarithm; NaN where there is none.
    scatter : array, shape (n, 2, 2)
        Covariance of the slope; NaN of too few tiles.
    height : array, shape (n,)
        Of the peak, in the units of the Hessian.
    """

    flat: NDArray[np.bool_] | None
    around: NDArray[np.float64]
    peak: NDArray[np.intp]
    shift: NDArray[np.float64]
    score: NDArray[np.float64]
    ratio: NDArray[np.float64]
    is_open: NDArray[np.bool_]
    clean: NDArray[np.float64]
    hessian: NDArray[np.float64]
    quartic: NDArray[np.float64]
    scatter: NDArray[np.float64]
    height: NDArray[np.float64]

    @classmethod
    def of(cls, columns: NDArray[np.float64], flat: NDArray[np.bool_] | None) -> FramePeaks:
        """Take what the kernel wrote (n, 48) apart."""
        around, peak = columns[:, 4:_RECORD].reshape(-1, 5, 5), columns[:, 29:31].astype(np.intp)
        score, ratio, is_open, clean = columns[:, 33], columns[:, 34], columns[:, 35] > 0, columns[:, 36]
        hessian, scatter = (columns[:, [at, at + 1, at + 1, at + 2]].reshape(-1, 2, 2) for at in (37, 42))
        quartic, height = columns[:, 40:42], columns[:, 45]
        return cls(
            flat, around, peak, columns[:, 31:33], score, ratio, is_open, clean, hessian, quartic, scatter, height
        )


@functools.lru_cache(maxsize=256)
def peak_places_launch(frames: int) -> Launch:
    """Choose the launch for so many frames."""
    return Launch("peaks/peak_places", {}, ceil_div(frames, _THREADS), _THREADS)


@functools.lru_cache(maxsize=64)
def frame_peaks_launch(frames: int, rules: Rules) -> Launch:
    """Choose the launch for so many frames."""
    defines: dict[str, str | int] = {name.upper(): repr(value) for name, value in rules._asdict().items()}
    return Launch("peaks/frame_peaks", defines, ceil_div(frames, _WARPS), _WARPS * WARP)


def peak_places(records: Any, first: tuple[int, int]) -> tuple[Any, Any]:
    """Whole shifts (n, 2), int32, and the nearest scores (n, 3, 3) of `records` in a window from shift `first` on."""
    count = records.shape[0]
    places, near = empty((count, 2), np.int32), empty((count, 3, 3))
    start(peak_places_launch(count), (records, places, near), (count, *first))
    return places, near


def noise_groups(height: int, width: int, period: int) -> int:
    """How often four rows of an image of this size are looked at for noise; 0 where it is too small."""
    return height // min(period, height) if min(height, width) > LAGS else 0


def frame_noise(frames: Any, period: int) -> Any:
    """Begin with what `frame_peaks` needs to know of the noise of frames (n, h, w); None where they are too small."""
    height, width = frames.shape[1:]
    groups = noise_groups(height, width, period)
    return started_noise_sums(frames, min(period, height), groups) if groups else None


def frame_peaks(
    found: tuple[Any, Any, Any, Any],
    noise: Any,
    frames: Any,
    values: Any,
    references: OfReferences,
    window: tuple[int, int, int, int],
    period: int,
    fit: str,
    rules: Rules,
) -> tuple[Any, Callable[[], FramePeaks]]:
    """Begin to say all of frames (n, h, w) as stored and as they were compared, the `values`.

    What is returned are the columns on the device, and what waits for them.

    Parameters
    ----------
    found
        Records (n, 29) and the whole shifts of `peak_places`; the nearest scores (n, 3, 3) over one overlap;
        summed-area tables (n, i, j, 2) of the frames, whose last elements are sums over the whole of each.
    noise
        Of `frame_noise`.
    window
        First shifts, and numbers of shifts, along rows and columns.
    period
        Rows of which four are looked at for noise.
    fit
        One of `FITS`.
    """
    records, places, near, tables = found
    count, height, width = frames.shape
    groups = noise_groups(height, width, period)
    noise_sums, parts = (records, 0) if noise is None else (noise, noise.shape[1])
    grid = references.grid
    products = start_tile_products(values, references.factors, grid, places)
    written = empty((count, _WRITTEN))
    table_size = 2 * tables.shape[1] * tables.shape[2]
    arrays = records, places, near, products, references.sums, references.noise, tables, noise_sums, written
    sizes = count, height, width, references.factors.shape[1], grid.tiles, grid.height * grid.width, table_size
    numbers = *sizes, groups, parts, *window[2:], *window[:2], FITS[fit]
    start(frame_peaks_launch(count, rules), arrays, numbers)
    pixels, dtype, arriving = height * width, frames.dtype, Download(written)

    def finished() -> FramePeaks:
        columns = arriving()
        return FramePeaks.of(columns, flat_by_sums(columns[:, -2], columns[:, -1], pixels, dtype))

    return written, finished


def flat_by_sums(
    sums: NDArray[np.float64], squares: NDArray[np.float64], pixels: int, dtype: np.dtype[Any]
) -> NDArray[np.bool_] | None:
    """Whether images have one value, by their sums and sums of squares (n,); None where rounding may hide it.

    Of integers, n times the sum of squares is the square of the sum exactly then. Both may need more than 64 bits: they
    are equal where the lowest 64 are, and what double precision makes of them is near.
    """
    if not sums_are_exact(pixels, dtype):
        return None
    scaled = pixels * squares
    near: NDArray[np.bool_] = scaled - sums * sums <= _ROUNDING * scaled
    if near.any():
        whole, of_squares = sums.astype(np.int64).view(np.uint64), squares.astype(np.uint64)
        near &= np.uint64(pixels) * of_squares == whole * whole
    return near


def sums_are_exact(pixels: int, dtype: np.dtype[Any]) -> bool:
    """Whether double precision holds the sums of squares of so many pixels of a type."""
    return dtype.kind in "iu" and dtype.itemsize <= _MAX_BYTES and pixels * int(np.iinfo(dtype).max + 1) ** 2 <= _EXACT
