"""Pixels far beyond all eight around them, of which these know nothing: no optics draws that."""

from __future__ import annotations

import math

import cv2
import numpy as np

from xcorr_app.gpu.runtime.arrays import Array, array_namespace

DEVIATIONS = 12.0
"""Of the noise, by which an outlier lies beyond its neighbours: none does by chance among 1e9 pixels."""
NOISE_OF_STEPS = 1.4826 / math.sqrt(2)
"""Standard deviation of white noise over the median step between neighbours."""
_REACH, RANGE = 0.05, 5.0
"""Share of its height, and deviations of the noise (of eight pixels 2.8, as a rule), by which its neighbours differ."""
_EIGHT = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]], np.uint8)


def stands_out(image: Array) -> bool:
    """Whether any pixel of an image (h, w) is far beyond all eight around it, without sorting what the noise is.

    As ``kernels/peaks/outlier_pixels.cu`` and ``small_steps.cu`` do.
    """
    above, below, _, steps = relief(image[None])
    height = array_namespace(image).maximum(above.max(), below.max())
    smaller, half = (DEVIATIONS * NOISE_OF_STEPS * steps < height).sum(), steps.size // 2
    return bool((smaller > half) & ((steps == 0).sum() <= half))


def outliers(frames: Array, between: float = RANGE) -> tuple[Array, Array]:
    """Pixels of frames (n, h, w) far beyond all eight around them; and those of which these are alike.

    But for so many deviations of the noise `between` them.
    """
    xp, (above, below, apart, steps) = array_namespace(frames), relief(frames)
    middle = steps.shape[1] // 2
    height, noise = (
        xp.maximum(above, below),
        NOISE_OF_STEPS * xp.partition(steps, middle, axis=1)[:, middle, None, None],
    )
    beyond = (height > DEVIATIONS * noise) & (noise > 0)
    return beyond, beyond & (apart < _REACH * height + between * noise)


def relief(frames: Array) -> tuple[Array, Array, Array, Array]:
    """How far pixels of frames (n, h, w) lie above, and below, the eight around them; how far apart these do, at most.

    And steps (n, k) between neighbours on every fourth row: noise and slopes, most of them small. What is not finite
    counts as zero, and lies beyond nothing. Around the rim frames are mirrored.
    """
    xp = array_namespace(frames)
    values = frames.astype(np.float32 if frames.dtype.itemsize <= 2 or frames.dtype == np.float32 else np.float64)
    if frames.dtype.kind == "f":
        values = xp.where(xp.isfinite(frames), values, 0)
    highest, lowest = _highest_around(values), -_highest_around(-values)
    beyond = values - highest, lowest - values
    if frames.dtype.kind == "f":
        beyond = tuple(xp.where(xp.isfinite(frames), height, 0) for height in beyond)
    return *beyond, highest - lowest, abs(xp.diff(values[:, ::4], axis=2)).reshape(len(values), -1)


def _highest_around(values: Array) -> Array:
    """Highest of the eight around pixels of frames (n, h, w)."""
    if (xp := array_namespace(values)) is np:
        return np.stack([cv2.dilate(each, _EIGHT, borderType=cv2.BORDER_REFLECT_101) for each in values])
    padded = xp.pad(values, ((0, 0), (1, 1), (1, 1)), mode="reflect")
    sides = xp.maximum(padded[..., :-2], padded[..., 2:])
    lines = xp.maximum(sides, padded[..., 1:-1])
    return xp.maximum(xp.maximum(lines[:, :-2], lines[:, 2:]), sides[:, 1:-1])
