"""What a few images on a device tell at a glance: pixels that stand out, lines that may be stuck, what is drawn."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from xcorr_app.gpu.runtime.arrays import dense, empty, to_host
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.launch import WARP, Launch
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of

IMAGES = 3
"""That are compared with each other."""

_BLOCKS = 256
_THREADS = 256
_PERIOD = 4
_LINE_THREADS = 1024
_PARTS = 8
_KINDS = IMAGES + 2


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


@functools.lru_cache(maxsize=256)
def stuck_lines_launch(element: str, limit: float) -> Launch:
    """Choose the launch for an image of a type, as NumPy names it, and so many median steps between lines."""
    defines = {"RIGHT_TYPE": INPUT_TYPES[element], "LIMIT": repr(limit)}
    return Launch("peaks/stuck_lines", defines, 2, _LINE_THREADS, 12 * (_LINE_THREADS // WARP))


@functools.lru_cache(maxsize=256)
def held_pixels_launch(element: str) -> Launch:
    """Choose the launch for three images of a type, as NumPy names it."""
    shared_bytes = 4 * _KINDS * (_THREADS // WARP)
    return Launch("peaks/held_pixels", {"RIGHT_TYPE": INPUT_TYPES[element]}, _BLOCKS, _THREADS, shared_bytes)


class PixelTest(NamedTuple):
    """What a look at an image tells."""

    stands_out: bool
    """Whether a pixel lies beyond all eight around it by more than so many median steps; False where most are zero."""
    varies: bool
    """Whether any step is not zero: then the image is not flat."""
    line_may_be_stuck: bool
    """Whether a row or column, or two, lies beyond those beside it by more than so many median steps between lines."""
    held: float | None = None
    """Share of the pixels that have one value in all of several images; None where that was not asked, or one is flat.
    """
    even_edge: bool = False
    """Whether the first or last row or column of one of those has one value."""


def look(image: Any, medians: float, of_lines: float, compared: tuple[Any, ...] = ()) -> PixelTest:
    """Look at the steps between neighbours along every fourth row of an image (h, w), and for what stands out.

    By so many median steps of pixels, or `of_lines`. The same wait tells what three images `compared` hold.
    """
    height, width = image.shape
    image, element = dense(image), name_of(image.dtype)
    # One array for all numbers that kernels leave to each other, and one that is waited for.
    numbers = empty(_BLOCKS + 2 * _PARTS * max(height, width))
    whole = empty(2 * (_BLOCKS + 1) + (_KINDS * _BLOCKS if compared else 0), np.int32)
    found, means, counts = numbers[:_BLOCKS], numbers[_BLOCKS:], whole[: 2 * _BLOCKS]
    start(outlier_pixels_launch(element), (image, found), (height, width, _BLOCKS))
    start(small_steps_launch(element, 1 / medians), (image, found, counts), (height, width, _BLOCKS))
    start(stuck_lines_launch(element, of_lines), (image, means, whole[2 * _BLOCKS :]), (height, width))
    if compared:
        images = (dense(each) for each in compared)
        start(held_pixels_launch(element), (*images, whole[2 * _BLOCKS + 2 :]), (height, width, _BLOCKS))
    said = to_host(whole)
    smaller, zero = said[: 2 * _BLOCKS].reshape(_BLOCKS, 2).sum(axis=0).tolist()
    steps = -(-height // _PERIOD) * (width - 1)
    seen = PixelTest(smaller > steps // 2 >= zero, zero < steps, bool(said[2 * _BLOCKS : 2 * _BLOCKS + 2].any()))
    if not compared:
        return seen
    held, *differ, even_edges = said[2 * _BLOCKS + 2 :].reshape(_BLOCKS, _KINDS).sum(axis=0).tolist()
    return seen._replace(held=held / (height * width) if all(differ) else None, even_edge=even_edges > 0)
