"""Frames looked at through a motion: a matrix, or a displacement of every pixel.

On the host by SciPy's splines, linearly by OpenCV; a device's frames by its own kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.moving.interpolation import EDGE_TOLERANCE
from xcorr_app.registration.one_blas_thread import one_blas_thread
from xcorr_app.registration.stack.passes import Pass
from xcorr_app.registration.warping.device_warp import ndimage_of, splines_of, takes, warped
from xcorr_app.registration.warping.grid import pixel_bases

Floats = NDArray[np.float64]
Mode = Literal["constant", "nearest"]
Warp = Callable[[Array, Sequence[int], int, Mode], Array]
"""Warps frames (n, Y, X), of such numbers in a stack, by an order and mode: as the reference shows them."""
_ORDERS = (0, 1, 3)
_PIXELS_A_RANGE = 1 << 21
"""Frame by frame."""
_MAX_LINES, _EXACT = 32766, 1e-4
"""Rows or columns that OpenCV takes, and the error in pixels of places that it takes as they are."""


def warp_frames(stack: Array, matrices: Floats, order: int = 1, mode: Mode = "constant", cval: float = 0.0) -> Array:
    """Warp frames (T, Y, X) by matrices (T, 3, 3) from places of the result to places of the frames.

    Returns an array of the shape, type and kind of `stack`; integers are rounded half to even and clipped.
    """
    _check(stack, order, mode)
    if np.shape(matrices) != (len(stack), 3, 3) or not np.isfinite(matrices).all():
        raise ArgumentError(
            f"matrices have shape {np.shape(matrices)}: give a finite 3 x 3 one for each of {len(stack)} frames"
        )
    y, x = (np.arange(size, dtype=np.float64) for size in stack.shape[1:])

    def places(t: int, xp: Any) -> Array:
        down, across = (xp.asarray(matrices[t, :2, axis, None] * at) for axis, at in enumerate((y, x)))
        return down[:, :, None] + (across + xp.asarray(matrices[t, :2, 2:]))[:, None]

    return _moved(stack, lambda: matrices, places, (matrices == np.eye(3)).all(axis=(1, 2)), order, mode, cval)


@one_blas_thread()
def warp_by_fields(
    stack: Array, fields: Floats, nodes: tuple[Floats, Floats], order: int = 1, mode: Mode = "constant", cval: float = 0
) -> Array:
    """Move frames (T, Y, X) by fields (T, gy, gx, 2) of rows, columns to add, given at `nodes` of rows and columns.

    Between the nodes a field is the cubic spline through them. Returns as `warp_frames` does.
    """
    _check(stack, order, mode)
    expected = (len(stack), len(nodes[0]), len(nodes[1]), 2)
    if np.shape(fields) != expected:
        raise ArgumentError(f"fields have shape {np.shape(fields)}: give {expected}")
    known = np.isfinite(fields).all(axis=(1, 2, 3))
    if not known.all():
        raise ArgumentError(f"the field of frame {known.argmin()} holds NaN or infinite values: give finite ones")
    # Linear places are float32, as OpenCV takes them.
    precise = [basis.astype(np.float32 if order == 1 else np.float64) for basis in pixel_bases(*nodes, stack.shape[1:])]

    def places(t: int, xp: Any) -> Array:
        field = np.moveaxis(-fields[t], 2, 0).astype(precise[0].dtype)
        return places_of(at_every_pixel(xp.asarray(field), (xp.asarray(precise[0]), xp.asarray(precise[1]))))

    def on_device() -> Any:
        there = array_namespace(stack).asarray(np.ascontiguousarray(fields, np.float64))
        return splines_of(there, nodes, stack.shape[1:])

    return _moved(stack, on_device, places, (fields == 0).all(axis=(1, 2, 3)), order, mode, cval)


def _check(stack: Array, order: int, mode: str) -> None:
    if stack.ndim != 3 or 0 in stack.shape:
        raise ShapeError(f"stack has shape {stack.shape}: expected (T, Y, X)")
    if order not in _ORDERS or mode not in ("constant", "nearest"):
        raise ArgumentError(f"order {order!r}, mode {mode!r}: use order 0, 1 or 3, and mode 'constant' or 'nearest'")
    if stack.dtype.kind not in "iuf":
        raise DataTypeError(f"stack has dtype {stack.dtype}: convert it to integers or floating point")


def _moved(
    stack: Array,
    on_device: Callable[[], Any],
    places: Callable[[int, Any], Array],
    stays: NDArray[np.bool_],
    order: int,
    mode: Mode,
    cval: float,
) -> Array:
    """Frames at `places` of a frame (2, Y, X); those that stay are copied bit by bit."""
    xp = array_namespace(stack)
    outside = cval if mode == "constant" else None
    if xp is not np and takes(stack.dtype):
        result = warped(stack, on_device(), order, outside)
        for t in np.flatnonzero(stays).tolist():
            result[t] = stack[t]
        return result
    working = np.float64 if stack.dtype.itemsize > 2 and stack.dtype != np.float32 else np.float32
    result = xp.empty_like(stack)
    for t, (frame, stay, out) in enumerate(zip(stack, stays, result, strict=True)):
        if stay:
            out[:] = frame
            continue
        at = places(t, xp)
        seen = values_at(frame.astype(working), at, order)
        if outside is not None:
            seen[~inside_frame(at, frame.shape)] = outside
        if stack.dtype.kind != "f":
            limits = np.iinfo(stack.dtype)
            seen = xp.clip(xp.rint(seen), limits.min, limits.max)
        out[:] = seen.astype(stack.dtype)
    return result


def values_at(frame: Array, places: Array, order: int) -> Array:
    """Values of a frame of floats at places (2, Y, X), those of the edge beyond it."""
    xp, working = array_namespace(frame), frame.dtype
    if xp is np and order == 1 and working == np.float32 and _is_exact_at(*frame.shape):
        return linear_at(frame, places.astype(np.float32, copy=False))
    ndimage = ndimage_of(xp)
    if order == 3:
        frame = ndimage.spline_filter(frame, order=3, output=working, mode="mirror")
    # Beyond the edge a spline is mirrored: the nearest pixel is at the edge.
    edge = xp.stack([xp.clip(place, 0, size - 1) for place, size in zip(places, frame.shape, strict=True)])
    return ndimage.map_coordinates(frame, edge, order=order, mode="mirror", output=working, prefilter=False)


def linear_at(frame: Array, places: Array, out: Array | None = None) -> Array:
    """Values of a frame of the host (float32) at places (2, Y, X), linearly interpolated, the nearest beyond."""
    import cv2

    return cv2.remap(frame, places[1], places[0], cv2.INTER_LINEAR, out, cv2.BORDER_REPLICATE)


@functools.cache
def _is_exact_at(rows: int, columns: int) -> bool:
    """Whether OpenCV looks between the pixels of frames of a size: before version 5 at every 1/32 of a pixel only."""
    if max(rows, columns) > _MAX_LINES:
        return False
    y, x = np.meshgrid(*[np.arange(40, dtype=np.float32)] * 2, indexing="ij")
    places = np.minimum([y + (0.37 * x) % 1, x + (0.41 * y) % 1], 39).astype(np.float32)
    return bool(np.abs(linear_at(y + 40 * x, places) - places[0] - 40 * places[1]).max() < 40 * _EXACT)


def at_every_pixel(values: Array, bases: tuple[Array, Array]) -> Array:
    """Values (..., gy, gx) at the nodes of a grid as surfaces (..., Y, X)."""
    return bases[0] @ values @ bases[1].T


def places_of(displacement: Array) -> Array:
    """Places (..., 2, Y, X) in the frame of pixels that are `displacement` (..., 2, Y, X) away."""
    xp = array_namespace(displacement)
    y, x = (xp.arange(size, dtype=displacement.dtype) for size in displacement.shape[-2:])
    return displacement + xp.stack(xp.broadcast_arrays(y[:, None], x[None, :]))


def inside_frame(places: Array, shape: tuple[int, int], rim: float = -EDGE_TOLERANCE) -> Array:
    """Which places (..., 2, Y, X), rows and columns, lie in a frame at least `rim` pixels from its edge."""
    y, x = places[..., 0, :, :], places[..., 1, :, :]
    return (y >= rim) & (y <= shape[0] - 1 - rim) & (x >= rim) & (x <= shape[1] - 1 - rim)


def by_matrices(matrices: Floats) -> Warp:
    """What warps by matrices (T, 3, 3) from places of the reference to places of the frame."""
    return lambda frames, numbers, order, mode: warp_frames(frames, matrices[list(numbers)], order, mode)


def by_fields(shifts: Floats, nodes: tuple[Floats, Floats]) -> Warp:
    """What warps by shifts (T, gy, gx, 2) at nodes of rows and columns."""
    return lambda frames, numbers, order, mode: warp_by_fields(frames, shifts[list(numbers)], nodes, order, mode)


def in_threads(warp: Callable[[slice], Array], stack: Array) -> Array:
    """What `warp` makes of the frames of a stack, which threads of the host share; a device has enough of its own."""
    if array_namespace(stack) is not np:
        return warp(slice(None))
    result = np.empty_like(stack)

    def one(start: int, stop: int) -> None:
        result[start:stop] = warp(slice(start, stop))

    for _ in Pass(len(stack), _PIXELS_A_RANGE, on_device=False).over("warp", one):
        pass
    return result
