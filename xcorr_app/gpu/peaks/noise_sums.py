"""Sums from which the noise of images in device memory is told: one launch for all of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.peaks.row_sums import start_row_sums
from xcorr_app.gpu.runtime.arrays import dense, empty, to_host
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.download import Download
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.types import WITH_DOUBLE, name_of

LAGS = 3
"""Pixels between the factors of a product at most, down or across."""
_SUMS = 2 * (2 * LAGS + 1)
_COLUMNS_OF_PART, _MAX_PARTS = 1 << 13, 16
"""Columns of four rows that a block adds up, as a rule; alone it would take a tenth of a millisecond for 512 x 512."""
_THREADS = 256


@functools.lru_cache(maxsize=256)
def noise_sums_launch(images: int, columns: int, element: str) -> Launch:
    """Choose the launch for images of a type, as NumPy names it, with so many columns of four rows each.

    Its blocks leave `_SUMS` sums each, those of an image one after the other.
    """
    parts = max(1, min(columns // _COLUMNS_OF_PART, _MAX_PARTS))
    shared_bytes = 8 * _SUMS * (_THREADS // 32)
    return Launch(
        "peaks/noise_sums", {"RIGHT_TYPE": WITH_DOUBLE[element]}, images * parts, _THREADS, shared_bytes, (parts,)
    )


def noise_sums(images: Any, period: int, groups: int) -> NDArray[np.float64]:
    """Mean products (n, 7) of pixels about their mean, of four rows in every `period`: see `mean_products`."""
    return mean_products(to_host(started_noise_sums(images, period, groups)), groups, images.shape[2])


def started_noise_sums(images: Any, period: int, groups: int, sums: Any = None) -> Any:
    """Sums (n, parts, 14) that `mean_products` takes, on their way, of four rows in every `period`; into `sums`."""
    count, height, width = images.shape
    launch = noise_sums_launch(count, groups * width, name_of(images.dtype))
    sums = empty((count, *launch.extra, _SUMS)) if sums is None else sums
    start(launch, (dense(images), sums), (height, width, period, groups, *launch.extra))
    return sums


RowsAndProducts: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64] | None]
"""Sum and sum of squares of each row of images (n, h, w), (n, h, 2), and `mean_products` (n, 7)."""


def started_rows_and_products(images: Any, period: int) -> Callable[[], RowsAndProducts]:
    """Begin with `RowsAndProducts`, the latter of four rows in every `period`, None where that is 0.

    What is returned waits for the device, once.
    """
    count, height, width = images.shape
    groups = height // period if period else 0
    parts = noise_sums_launch(count, groups * width, name_of(images.dtype)).extra[0] if period else 0
    of_rows = count * height * 2
    found = empty(of_rows + count * parts * _SUMS)
    start_row_sums(images, found[:of_rows], 1)
    if period:
        started_noise_sums(images, period, groups, found[of_rows:])

    arriving = Download(found)

    def finished() -> RowsAndProducts:
        host = arriving()
        rows: NDArray[np.float64] = host[:of_rows].reshape(count, height, 2)
        return rows, mean_products(host[of_rows:].reshape(count, parts, _SUMS), groups, width) if period else None

    return finished


def mean_products(sums: NDArray[np.float64], groups: int, width: int) -> NDArray[np.float64]:
    """Mean products about the mean of all pixels: of none, 1, 2 and 3 pixels apart down, then 1, 2 and 3 across.

    Of n images, whose `sums` are (n, parts, 14).
    """
    sums, pairs = sums.sum(axis=1), _pairs(groups, width)
    products, factors = sums[:, ::2] / pairs, sums[:, 1::2] / pairs
    mean = factors[:, :1] / 2
    found: NDArray[np.float64] = products - mean * factors + mean * mean
    return found


@functools.lru_cache(maxsize=64)
def _pairs(groups: int, width: int) -> NDArray[np.int64]:
    """Products (7,) that there are of each kind."""
    rows, lags = LAGS + 1, np.arange(1, LAGS + 1)
    return groups * np.concatenate([[rows * width], (rows - lags) * width, rows * (width - lags)])
