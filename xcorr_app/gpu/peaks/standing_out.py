"""Whether a pixel of an image in device memory stands out among its neighbours: two launches and one wait."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.launch import WARP, Launch
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of

__all__ = ["small_steps_launch", "standing_out_launch", "stands_out"]

_BLOCKS = 256
_THREADS = 256
_PERIOD = 4


def standing_out_launch(element: str) -> Launch:
    """Choose the launch for an image of a type, as NumPy names it."""
    return Launch("peaks/standing_out", {"RIGHT_TYPE": INPUT_TYPES[element]}, _BLOCKS, _THREADS, 8 * (_THREADS // WARP))


def small_steps_launch(element: str, limit: float) -> Launch:
    """Choose the launch for an image of a type, as NumPy names it, and steps below a share of what stands out."""
    defines = {"RIGHT_TYPE": INPUT_TYPES[element], "LIMIT": repr(limit)}
    return Launch("peaks/small_steps", defines, _BLOCKS, _THREADS, 8 * (_THREADS // WARP))


def stands_out(image: Any, medians: float) -> bool:
    """Whether a pixel of an image (h, w) lies beyond all eight around it by more than so many median steps.

    The steps are those between neighbours along every fourth row; False where most of them are zero.
    """
    cupy = importlib.import_module("cupy")
    height, width = image.shape
    image, element = cupy.ascontiguousarray(image), name_of(image.dtype)
    found, counts = cupy.empty(_BLOCKS), cupy.empty((_BLOCKS, 2), np.int32)
    start(standing_out_launch(element), (image, found), (height, width, _BLOCKS))
    start(small_steps_launch(element, 1 / medians), (image, found, counts), (height, width, _BLOCKS))
    smaller, zero = to_host(counts).sum(axis=0)
    middle = -(-height // _PERIOD) * (width - 1) // 2
    return bool(smaller > middle >= zero)
