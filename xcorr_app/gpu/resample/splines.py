"""Coefficients of the cubic splines through frames, on the device: `spline_frames.cu`, its launch and call."""

from __future__ import annotations

from typing import Any

import numpy as np

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.arrays import dense, empty
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.launch import Launch, ceil_div
from xcorr_app.gpu.runtime.types import name_of

READ = {
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "int16": "short",
    "float32": "float",
    "float64": "double",
}
"""Types of frames."""
_RADIUS = 12
"""Pixels after which float32 keeps nothing of the filter."""
_TILE, _THREADS = (32, 64), 256


def spline_launch(shape: tuple[int, int], count: int, dtype: str) -> Launch:
    """So many frames of a shape."""
    if dtype not in READ:
        raise ArgumentError(f"frames of {dtype} are not read: give {', '.join(READ)}")
    tiles = tuple(ceil_div(size, tile) for size, tile in zip(shape, _TILE, strict=True))
    shared_bytes = 4 * (_TILE[0] + 2 * _RADIUS) * (2 * _TILE[1] + 2 * _RADIUS + 2)
    defines: dict[str, str | int] = {"RIGHT_TYPE": READ[dtype], "RADIUS": _RADIUS}
    return Launch("resample/spline_frames", defines, tiles[0] * tiles[1] * count, _THREADS, shared_bytes, tiles)


def spline_frames(frames: Any) -> Any:
    """Coefficients of the cubic splines through frames (T, Y, X), mirrored about the pixels of their edges."""
    count, height, width = frames.shape
    given, found = dense(frames), empty(frames.shape, np.float32)
    launch = spline_launch((height, width), count, name_of(frames.dtype))
    start(launch, (given, found), (height, width, *launch.extra))
    return found
