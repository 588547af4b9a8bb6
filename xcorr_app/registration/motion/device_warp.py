"""Frames warped on a device: by the kernel of ``kernels/resample``, fed with coefficients of splines where needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.resample.problem import PIXEL_TYPES, sum_type
from xcorr_app.gpu.resample.warping import FieldSplines, warp_on_device
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.gpu.runtime.memory import in_parts
from xcorr_app.gpu.runtime.types import name_of
from xcorr_app.registration.motion.grid import local_splines
from xcorr_app.registration.motion.ndimage import ndimage_of

_METHODS = {0: "nearest", 1: "linear", 3: "cubic"}
_COEFFICIENT_BYTES = 1 << 28
"""Of coefficients at a time: enough frames to fill a device."""


def takes(dtype: np.dtype[Any]) -> bool:
    """Whether the kernel knows a type."""
    return name_of(dtype) in PIXEL_TYPES


def splines_of(
    fields: NDArray[np.float64], nodes: tuple[NDArray[np.float64], NDArray[np.float64]], shape: tuple[int, int]
) -> FieldSplines:
    """Splines of displacements from fields (T, gy, gx, 2) of shifts to add, which are the other way round."""
    (rows, first_y, weights_y), (columns, first_x, weights_x) = map(local_splines, nodes, shape)
    coefficients = -np.einsum("ai,tijc,bj->tabc", rows, fields, columns, optimize=True)
    return FieldSplines(coefficients.astype(np.float32), (first_y, first_x), (weights_y, weights_x))


def warped(frames: Array, motion: NDArray[np.float64] | FieldSplines, order: int, outside: float | None) -> Array:
    """See frames (T, Y, X) through matrices (T, 3, 3) or fields; outside is `outside`, or the nearest pixel."""
    xp, method = array_namespace(frames), _METHODS[order]

    def part(start: int, stop: int) -> Array:
        source, moves = frames[start:stop], motion
        if isinstance(motion, FieldSplines):
            moves = FieldSplines(motion.coefficients[start:stop], motion.starts, motion.weights)
        else:
            moves = motion[start:stop, :2]
        if order == 3:
            working = np.float64 if sum_type(name_of(frames.dtype)) == "double" else np.float32
            source = source.astype(working)
            for axis in (1, 2):
                source = ndimage_of(xp).spline_filter1d(source, order=3, axis=axis, output=working, mode="mirror")
        return warp_on_device(source, moves, frames.dtype, method, outside=outside)

    at_once = max(1, _COEFFICIENT_BYTES // (8 * frames[0].size)) if order == 3 else len(frames)
    if at_once >= len(frames):
        return part(0, len(frames))
    result = xp.empty(frames.shape, frames.dtype)
    for stop, moved in in_parts(part, len(frames), at_once=at_once, what="Warped frames"):
        result[stop - len(moved) : stop] = moved
    return result
