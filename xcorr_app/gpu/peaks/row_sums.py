"""Sums over rows of images in device memory, from which means and variances follow."""

from __future__ import annotations

import functools
from typing import Any

from xcorr_app.gpu.runtime.arrays import dense
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of

_THREADS = 128


@functools.lru_cache(maxsize=256)
def row_sums_launch(rows: int, element: str) -> Launch:
    """Choose the launch for so many rows of all images, of a type as NumPy names it."""
    defines = {"RIGHT_TYPE": INPUT_TYPES[element]}
    return Launch("peaks/row_sums", defines, rows, _THREADS, 2 * 8 * (_THREADS // WARP))


def start_row_sums(images: Any, sums: Any, period: int) -> None:
    """Begin to fill `sums`, of 2 n ceil(h / period) doubles, by every `period`-th row of images (n, h, w)."""
    count, height, width = images.shape
    launch = row_sums_launch(count * ceil_div(height, period), name_of(images.dtype))
    start(launch, (dense(images), sums), (height, width, period))
