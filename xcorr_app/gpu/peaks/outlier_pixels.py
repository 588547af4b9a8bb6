"""Whether a pixel of an image in device memory stands out among its neighbours: two launches and one wait."""

from __future__ import annotations

import functools
import importlib
from typing import Any, NamedTuple

import numpy as np

from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.launch import WARP, Launch
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of

__all__ = ["Seen", "look", "outlier_pixels_launch", "small_steps_launch"]

_BLOCKS = 256
_THREADS = 256
_PERIOD = 4


@functools.lru_cache(maxsize=256)
def outlier_pixels_launch(element: str) -> Launch:
    """Choose the launch for an image of a type, as NumPy names it."""
    return Launch(
        "peaks/outlier_pixels", {"RIGHT_TYPE": INPUT_TYPES[element]}, _BLOCKS, _THREADS, 8 * (_THREADS // WARP)
    )


@functools.lru_cache(maxsize=256)
def small_steps_launch(element: str, limit: float) -> Launch:
    """Choose the launch for an image of a type, as NumPy names it, and steps below a share of what stands out."""
    defines = {"RIGHT_TYPE": INPUT_TYPES[element], "LIMIT": repr(limit)}
    return Launch("peaks/small_steps", defines, _BLOCKS, _THREADS, 8 * (_THREADS // WARP))


class Seen(NamedTuple):
    """What a look at an image tells."""

    stands_out: bool
    """Whether a pixel lies beyond all eight around it by more than so many median steps; False where most are zero."""
    varies: bool
    """Whether any step is not zero: then the image is not flat."""


def look(image: Any, medians: float) -> Seen:
    """Look at the steps between neighbours along every fourth row of an image (h, w), and for what stands out."""
    cupy = importlib.import_module("cupy")
    height, width = image.shape
    image, element = cupy.ascontiguousarray(image), name_of(image.dtype)
    found, counts = cupy.empty(_BLOCKS), cupy.empty((_BLOCKS, 2), np.int32)
    start(outlier_pixels_launch(element), (image, found), (height, width, _BLOCKS))
    start(small_steps_launch(element, 1 / medians), (image, found, counts), (height, width, _BLOCKS))
    smaller, zero = to_host(counts).sum(axis=0)
    steps = -(-height // _PERIOD) * (width - 1)
    return Seen(bool(smaller > steps // 2 >= zero), bool(zero < steps))
