"""Frames warped on a device: by the kernel of ``kernels/resample``, fed with coefficients of splines where needed."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.resample.problem import PIXEL_TYPES, sum_type
from xcorr_app.gpu.resample.splines import READ, spline_frames
from xcorr_app.gpu.resample.warping import FieldSplines, warp_on_device
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.gpu.runtime.constants import constants
from xcorr_app.gpu.runtime.memory import in_parts
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.runtime.types import name_of
from xcorr_app.registration.warping.grid import local_splines


def ndimage_of(xp: Any) -> ModuleType:
    """Return ``scipy.ndimage`` or its twin for device arrays."""
    if xp is np:
        from scipy import ndimage
    else:
        from cupyx.scipy import ndimage
    module: ModuleType = ndimage
    return module


_METHODS = {0: "nearest", 1: "linear", 3: "cubic"}
_COEFFICIENT_BYTES = 1 << 29
"""Of coefficients at a time: enough frames that starting what works on them takes less time than the work."""


def takes(dtype: np.dtype[Any]) -> bool:
    """Whether the kernel knows a type."""
    return name_of(dtype) in PIXEL_TYPES


def splines_of(
    fields: Array, nodes: tuple[NDArray[np.float64], NDArray[np.float64]], shape: tuple[int, int]
) -> FieldSplines:
    """Splines of displacements from fields (T, gy, gx, 2) of shifts to add, which are the other way round.

    They are where the fields are, with their tables.
    """
    xp = array_namespace(fields)
    where = None if xp is np else current_device()
    (rows, first_y, weights_y), (columns, first_x, weights_x) = (
        _splines_along(np.asarray(at, np.float64).tobytes(), size, xp, where)
        for at, size in zip(nodes, shape, strict=True)
    )
    count, height, width, _ = fields.shape
    down = rows @ fields.reshape(count, height, 2 * width)
    both = -(columns @ down.reshape(count, len(rows), width, 2))
    return FieldSplines(both.astype(np.float32), (first_y, first_x), (weights_y, weights_x))


def spline_coefficients(frames: Array) -> Array:
    """Coefficients of the cubic splines through frames, in float32 where that holds every value of a pixel."""
    if _coefficient_bytes(frames.dtype) == 4:
        return spline_frames(frames if name_of(frames.dtype) in READ else frames.astype(np.float32))
    found, ndimage = frames.astype(np.float64), ndimage_of(array_namespace(frames))
    for axis in (1, 2):
        found = ndimage.spline_filter1d(found, order=3, axis=axis, output=np.float64, mode="mirror")
    return found


@functools.lru_cache(maxsize=16)
def _splines_along(nodes: bytes, size: int, xp: Any, _device: int | None) -> tuple[Array, Array, Array]:
    """Splines of nodes along an axis, brought to a device once."""
    tables = local_splines(np.frombuffer(nodes, np.float64), size)
    return constants(xp, lambda: tuple(xp.asarray(table) for table in tables))


def warped(frames: Array, motion: NDArray[np.float64] | FieldSplines, order: int, outside: float | None) -> Array:
    """See frames (T, Y, X) through matrices (T, 3, 3) or fields; outside is `outside`, or the nearest pixel."""
    xp, method = array_namespace(frames), _METHODS[order]
    result = xp.empty(frames.shape, frames.dtype)
    moves = motion if isinstance(motion, FieldSplines) else xp.asarray(np.ascontiguousarray(motion[:, :2]))

    def part(start: int, stop: int) -> None:
        source = frames[start:stop]
        source = spline_coefficients(source) if order == 3 else source
        warp_on_device(source, moves[start:stop], frames.dtype, method, outside=outside, out=result[start:stop])

    at_once = max(1, _COEFFICIENT_BYTES // (_coefficient_bytes(frames.dtype) * frames[0].size)) if order == 3 else None
    for _ in in_parts(part, len(frames), at_once=at_once, what="Warped frames"):
        pass
    return result


def _coefficient_bytes(dtype: np.dtype[Any]) -> int:
    """Of a pixel."""
    return 4 if sum_type(name_of(dtype)) == "float" else 8
