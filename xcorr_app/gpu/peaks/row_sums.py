"""Sums over rows of images in device memory, from which means and variances follow."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of

__all__ = ["row_sums", "row_sums_launch"]

_THREADS = 128


def row_sums_launch(rows: int, element: str) -> Launch:
    """Choose the launch for so many rows of all images, of a type as NumPy names it."""
    defines = {"RIGHT_TYPE": INPUT_TYPES[element]}
    return Launch("peaks/row_sums", defines, rows, _THREADS, 2 * 8 * (_THREADS // WARP))


def row_sums(images: Any) -> NDArray[np.float64]:
    """Sum and sum of squares of each row of images (n, h, w), (n, h, 2)."""
    cupy = importlib.import_module("cupy")
    sums = cupy.empty((*images.shape[:2], 2))
    start_row_sums(images, sums, 1)
    found: NDArray[np.float64] = to_host(sums)
    return found


def start_row_sums(images: Any, sums: Any, period: int) -> None:
    """Begin to fill `sums`, of 2 n ceil(h / period) doubles, by every `period`-th row of images (n, h, w)."""
    cupy = importlib.import_module("cupy")
    count, height, width = images.shape
    launch = row_sums_launch(count * ceil_div(height, period), name_of(images.dtype))
    start(launch, (cupy.ascontiguousarray(images), sums), (height, width, period))
