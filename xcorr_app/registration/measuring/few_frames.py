"""A few frames of a series that are looked at more closely: which, and how they are read."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array
from xcorr_app.registration.measuring.measured import Measured
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import Frames, PickedFrames
from xcorr_app.registration.stack.preparation import prepare


def near_each_other(measured: Measured, shape: tuple[int, int]) -> NDArray[np.intp]:
    """Frames with shifts, but for those that would leave half of what the others share, and for repetitions.

    On the edge of the window there is no peak: where most others have one, such frames were not found.
    """
    known = measured.usable & np.isfinite(measured.shifts).all(axis=1)
    if measured.on_edge.any() and 2 * (found := known & ~measured.on_edge).sum() > known.sum():
        known = found
    if known.any():
        distance = np.abs(np.nan_to_num(measured.shifts) - _median(measured.shifts[known]))
        known &= (distance <= np.array(shape) / 4).all(axis=1)
    return _distinct(measured, np.flatnonzero(known))


def _distinct(measured: Measured, numbers: NDArray[np.intp]) -> NDArray[np.intp]:
    """Numbers of frames less those that show the same as another to the last bit: they share its noise.

    A camera that sends a frame twice, or a movie that is looped: what such frames have in common stands still.
    """
    columns = np.column_stack([measured.shifts, measured.sigma, measured.score, measured.significance])[numbers]
    first = np.unique(np.nan_to_num(columns, nan=-1.0), axis=0, return_index=True)[1]
    distinct: NDArray[np.intp] = numbers[np.sort(first)]
    return distinct


def spread(numbers: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """At most so many of the numbers, spread evenly, the first among them."""
    spread: NDArray[np.intp] = numbers[_places(numbers.size, min(count, numbers.size))]
    return spread


@functools.lru_cache(maxsize=256)
def _places(size: int, count: int) -> NDArray[np.intp]:
    """So many places among `size`: of every stack the same, and several times."""
    return np.unique(np.linspace(0, size - 1, count).round().astype(np.intp))


def _median(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Median (2,) of finite rows (n, 2); NumPy's own takes several times as long, for what it does around it."""
    middle = (len(values) - 1) // 2, len(values) // 2
    ordered = np.partition(values, middle, axis=0)
    median: NDArray[np.float64] = (ordered[middle[0]] + ordered[middle[1]]) / 2
    return median


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
