"""Ranges of images in device memory, and the images brought to zero mean and magnitude one: a launch each."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import dense, empty, to_host
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.download import Download
from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of

READ = {**INPUT_TYPES, "int8": "signed char", "int32": "int", "uint32": "unsigned int"}
"""Types of images that double precision holds with all their digits."""
_WRITTEN = {"float32": "float", "float64": "double"}
_KINDS = 3
"""Numbers that are written of a part."""
_THREADS = 256
_PER_THREAD = 8
_PIXELS_OF_PART, _MAX_PARTS = 1 << 14, 64
"""Pixels of a part of an image, as a rule: how a mean is rounded must not depend on the number of images."""


@functools.lru_cache(maxsize=256)
def image_ranges_launch(blocks: int, element: str) -> Launch:
    """Choose the launch for so many parts of all images, of a type as NumPy names it."""
    shared_bytes = 3 * 8 * (_THREADS // WARP)
    return Launch("peaks/image_ranges", {"RIGHT_TYPE": READ[element]}, blocks, _THREADS, shared_bytes)


@functools.lru_cache(maxsize=256)
def standard_values_launch(images: int, pixels: int, element: str, written: str, rounding: float) -> Launch:
    """Choose the launch for images of a type, as NumPy names it; equal up to `rounding`, their values are flat."""
    defines = {"RIGHT_TYPE": READ[element], "OUT_TYPE": _WRITTEN[written], "ROUNDING": repr(rounding)}
    return Launch("peaks/standard_values", defines, images * ceil_div(pixels, _THREADS * _PER_THREAD), _THREADS)


def image_ranges(images: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Smallest and largest value of images (..., h, w), each (...)."""
    ranges = _started(images)
    # Of many images at once, for each of their few parts.
    lows, highs = np.ascontiguousarray(to_host(ranges).transpose(2, 1, 0)[:2])
    shape = images.shape[:-2]
    return lows.min(axis=0).reshape(shape), highs.max(axis=0).reshape(shape)


def all_finite(*images: Any) -> bool:
    """Whether images (..., h, w) hold neither NaN nor infinite values: sums in double precision tell."""
    return started_finite(*images)()


def started_finite(*images: Any) -> Callable[[], bool]:
    """Begin with :func:`all_finite`; what is returned waits for the device, once for all images."""
    return started_ranges(*images)[1]


def started_ranges(*images: Any) -> tuple[list[Any], Callable[[], bool]]:
    """Begin with the ranges (n, parts, 3) of several stacks, for `standard_values`, and with :func:`all_finite`."""
    sizes = [_KINDS * math.prod(each.shape[:-2]) * _parts(each) for each in images]
    ranges, parts, first = empty(sum(sizes)), [], 0
    for each, size in zip(images, sizes, strict=True):
        parts.append(ranges[first : first + size].reshape(-1, _parts(each), _KINDS))
        _start(each, parts[-1])
        first += size
    arriving = Download(ranges)
    return parts, lambda: bool(np.isfinite(arriving()).all())


def standard_values(images: Any, dtype: np.dtype[Any], rounding: float, ranges: Any = None) -> tuple[Any, Any]:
    """Images (..., h, w) less their mean and over their largest deviation, and which of them (...) are flat.

    `ranges` are those of `started_ranges`, if they are known.
    """
    images = dense(images)
    ranges = _started(images) if ranges is None else ranges
    pixels, (count, parts) = images.shape[-2] * images.shape[-1], ranges.shape[:2]
    values, flat = empty(images.shape, dtype), empty(images.shape[:-2], np.bool_)
    launch = standard_values_launch(count, pixels, name_of(images.dtype), name_of(dtype), rounding)
    start(launch, (images, ranges, values, flat), (pixels, parts, launch.blocks // max(count, 1)))
    return values, flat


def _started(images: Any) -> Any:
    """Ranges (n, parts, 3) of n images, on their way."""
    ranges = empty((math.prod(images.shape[:-2]), _parts(images), _KINDS))
    _start(images, ranges)
    return ranges


def _parts(images: Any) -> int:
    """Parts of an image."""
    pixels: int = images.shape[-2] * images.shape[-1]
    return max(1, min(pixels // _PIXELS_OF_PART, _MAX_PARTS))


def _start(images: Any, ranges: Any) -> None:
    """Begin to write the ranges of n images, as many as there are parts of each."""
    parts = _parts(images)
    launch = image_ranges_launch(math.prod(images.shape[:-2]) * parts, name_of(images.dtype))
    start(launch, (dense(images), ranges), (images.shape[-2] * images.shape[-1], parts))
