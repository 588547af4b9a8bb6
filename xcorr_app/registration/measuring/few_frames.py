"""A few frames of a series that are looked at more closely: which, and how they are read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array
from xcorr_app.registration.measuring.measured import Measured
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import Frames, PickedFrames
from xcorr_app.registration.stack.preparation import prepare


def near_each_other(measured: Measured, shape: tuple[int, int]) -> NDArray[np.intp]:
    """Frames with shifts, but for those that would leave half of what the others share."""
    known = measured.usable & np.isfinite(measured.shifts).all(axis=1)
    if known.any():
        distance = np.abs(np.nan_to_num(measured.shifts) - np.median(measured.shifts[known], axis=0))
        known &= (distance <= np.array(shape) / 4).all(axis=1)
    return np.flatnonzero(known)


def spread(numbers: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """At most so many of the numbers, spread evenly, the first among them."""
    spread: NDArray[np.intp] = numbers[
        np.unique(np.linspace(0, numbers.size - 1, min(count, numbers.size)).round().astype(int))
    ]
    return spread


def taken(frames: Frames, numbers: NDArray[np.intp], settings: Settings) -> Array:
    """Frames (n, Y, X) as floats without their means."""
    floats = []
    for number in numbers:
        chunk = frames.read(int(number), int(number) + 1)
        if is_device_array(chunk.frames):  # every step costs the host as much time as many frames take
            picked = PickedFrames(frames, tuple(numbers.tolist()))
            images = prepare(picked.read(0, picked.count), settings).frames
            images = images.astype(working_dtype(images))
            return images - images.mean(axis=(1, 2), keepdims=True)
        image = prepare(chunk, settings).frames[0]
        image = image.astype(working_dtype(image))
        floats.append(image - image.mean())
    return array_namespace(floats[0]).stack(floats)
