"""A few frames of a series that are looked at more closely: which, and how they are read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.gpu.runtime.arrays import Array
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
        distance = np.abs(np.nan_to_num(measured.shifts) - np.median(measured.shifts[known], axis=0))
        known &= (distance <= np.array(shape) / 4).all(axis=1)
    # Frames that show the same as another to the last bit (a camera that sends one twice, a looped movie) share its
    # noise: what such frames have in common stands still.
    numbers = np.flatnonzero(known)
    columns = np.column_stack([measured.shifts, measured.sigma, measured.score, measured.significance])[numbers]
    rows = columns.view(np.dtype((np.void, columns.shape[1] * columns.itemsize)))[:, 0]
    return numbers[np.sort(np.unique(rows, return_index=True)[1])]


def spread(numbers: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """At most so many of the numbers, spread evenly, the first among them."""
    places = np.linspace(0, numbers.size - 1, min(count, numbers.size)).round().astype(np.intp)
    return np.asarray(numbers[places])


def taken(frames: Frames, numbers: NDArray[np.intp], settings: Settings) -> Array:
    """Frames (n, Y, X) as floats without their means."""
    picked = PickedFrames(frames, tuple(numbers.tolist()))
    images = prepare(picked.read(0, picked.count), settings).frames
    images = images.astype(working_dtype(images))
    return images - images.mean(axis=(1, 2), keepdims=True)
