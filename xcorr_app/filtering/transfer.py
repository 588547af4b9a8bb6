"""Images in host memory that a GPU filters: there and back in parts that fit, and on the CPU where none does."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.filtering.device import filter_device_frames
from xcorr_app.filtering.taps import Filter
from xcorr_app.gpu.runtime.memory import bytes_within_limit, in_parts

_MAX_PIXELS = 1 << 25
"""Of a part: enough to keep a device busy."""
_BYTES_PER_PIXEL = 48
"""What a part takes at most as a rule: images, result, and both once more in float64."""

OnHost = Callable[[npt.NDArray[Any], npt.NDArray[Any]], int]
"""Fills its second argument with its first one filtered; returns the number of clipped pixels."""


def filter_through_device(
    images: npt.NDArray[Any], taps: npt.ArrayLike | Filter, out: npt.NDArray[Any], how: dict[str, Any], on_host: OnHost
) -> int:
    """Filter images by a kernel of the current GPU.

    From where its memory runs out, parts are half as long; an image that does not fit alone is filtered on the CPU.
    """
    xp = importlib.import_module("cupy")
    frames = list(np.ndindex(images.shape[:-2]))
    pixels = images.shape[-2] * images.shape[-1]
    size = max(1, min(_MAX_PIXELS, bytes_within_limit() // _BYTES_PER_PIXEL) // pixels)

    def filtered(start: int, stop: int) -> tuple[npt.NDArray[Any], int]:
        part = np.stack([images[index] for index in frames[start:stop]])
        source = xp.asarray(part.astype(part.dtype.newbyteorder("="), copy=False))
        result, count = filter_device_frames(source, taps, **how)
        return xp.asnumpy(result), count

    def on_device(start: int, stop: int) -> int:
        planes, count = filtered(start, stop)
        for index, plane in zip(frames[start:stop], planes, strict=True):
            out[index] = plane
        return count

    def alone(i: int) -> int:
        return on_host(images[frames[i]], out[frames[i]])

    return sum(count for _, count in in_parts(on_device, len(frames), at_once=size, alone=alone))
