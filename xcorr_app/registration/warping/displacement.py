"""Frames looked at through a displacement of every pixel."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.warping.device_warp import splines_of, takes, warped
from xcorr_app.registration.warping.grid import pixel_bases
from xcorr_app.registration.warping.ndimage import ndimage_of
from xcorr_app.registration.warping.warp import Mode, inside_frame, with_copies

_ORDERS = (0, 1, 3)
_MAX_LINES, _EXACT = 32766, 1e-4
"""Rows or columns that OpenCV takes, and the error in pixels of places that it takes as they are."""
_MULTIPLICATIONS = 1 << 18
"""Of a product up to which OpenBLAS and its like work in the thread that calls them."""


def at_every_pixel(values: Array, bases: tuple[Array, Array]) -> Array:
    """Values (2, gy, gx) at the nodes of a grid as a surface (2, Y, X)."""
    return product(product(bases[0], values), bases[1].T)


def product(one: Array, other: Array) -> Array:
    """Product of matrices (..., n, m) and (m, k), in one thread for float32 on the host.

    Frames are fitted by several threads; the threads of a BLAS below each of them would wait for one another. It shares
    out no product as small as these parts.
    """
    if array_namespace(one) is not np or one.dtype != np.float32 or other.dtype != np.float32:
        return one @ other
    if one.ndim == 3:
        return product(one.reshape(-1, one.shape[2]), other).reshape(*one.shape[:2], other.shape[1])
    if other.ndim == 3:
        return np.stack([product(one, part) for part in other])
    rows, inner = one.shape
    parts = -(-rows * inner * other.shape[1] // _MULTIPLICATIONS)
    if parts == 1:
        return one @ other
    if rows < 4 * parts:
        return sum(one[:, a:b] @ other[a:b] for a, b in _edges(inner, parts))
    found = np.empty((rows, other.shape[1]), np.float32)
    for a, b in _edges(rows, parts):
        np.matmul(one[a:b], other, out=found[a:b])
    return found


@functools.cache
def _edges(size: int, parts: int) -> list[tuple[int, int]]:
    """Where each of so many equal parts begins and ends."""
    edges = [size * part // parts for part in range(parts + 1)]
    return list(itertools.pairwise(edges))


def places_of(displacement: Array) -> Array:
    """Places (2, Y, X) in the frame of pixels that are `displacement` (2, Y, X) away."""
    xp = array_namespace(displacement)
    height, width = displacement.shape[1:]
    y, x = xp.arange(height, dtype=displacement.dtype), xp.arange(width, dtype=displacement.dtype)
    return displacement + xp.stack(xp.broadcast_arrays(y[:, None], x[None, :]))


def linear_at(frame: Array, places: Array) -> Array:
    """Values of a frame (float32) at places (2, Y, X), linearly interpolated, the nearest beyond its edge."""
    xp = array_namespace(frame)
    if xp is np:
        import cv2

        return cv2.remap(frame, places[1], places[0], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return ndimage_of(xp).map_coordinates(frame, places, order=1, mode="nearest", output=frame.dtype)


@functools.cache
def _is_exact_at(rows: int, columns: int) -> bool:
    """Whether OpenCV looks between the pixels of frames of a size: before version 5 at every 1/32 of a pixel only."""
    if max(rows, columns) > _MAX_LINES:
        return False
    numbers = np.arange(40, dtype=np.float32)
    y, x = np.meshgrid(numbers, numbers, indexing="ij")
    places = np.stack([y + (0.37 * x) % 1, x + (0.41 * y) % 1]).astype(np.float32)
    found, edge = linear_at(y + 40 * x, places), np.minimum(places, 39)
    return bool(np.abs(found - edge[0] - 40 * edge[1]).max() < 40 * _EXACT)


def warp_by_fields(
    stack: Array,
    fields: NDArray[np.float64],
    nodes: tuple[NDArray[np.float64], NDArray[np.float64]],
    order: int = 1,
    mode: Mode = "constant",
    cval: float = 0.0,
) -> Array:
    """Move frames (T, Y, X) by fields (T, gy, gx, 2) of rows, columns to add, given at `nodes` of rows and columns.

    Between the nodes a field is the cubic spline through them. Returns an array of the shape, type and kind of
    `stack`; integers are rounded half to even and clipped.
    """
    xp: Any = array_namespace(stack)
    if stack.ndim != 3 or 0 in stack.shape:
        raise ShapeError(f"stack has shape {stack.shape}: expected (T, Y, X)")
    expected = (len(stack), len(nodes[0]), len(nodes[1]), 2)
    if np.shape(fields) != expected:
        raise ArgumentError(f"fields have shape {np.shape(fields)}: give {expected}")
    if not np.isfinite(fields).all():
        lost = np.flatnonzero(~np.isfinite(fields).all(axis=(1, 2, 3)))
        raise ArgumentError(f"the field of frame {lost[0]} holds NaN or infinite values: give finite ones")
    if order not in _ORDERS or mode not in ("constant", "nearest"):
        raise ArgumentError(f"order {order!r}, mode {mode!r}: use order 0, 1 or 3, and mode 'constant' or 'nearest'")
    if stack.dtype.kind not in "iuf":
        raise DataTypeError(f"stack has dtype {stack.dtype}: convert it to integers or floating point")
    if xp is not np and takes(stack.dtype):
        outside = cval if mode == "constant" else None
        there = xp.asarray(np.ascontiguousarray(fields, np.float64))
        seen = warped(stack, splines_of(there, nodes, stack.shape[1:]), order, outside)
        return with_copies(seen, stack, (fields == 0).all(axis=(1, 2, 3)))
    working = np.float64 if stack.dtype.itemsize > 2 and stack.dtype != np.float32 else np.float32
    bases = tuple(xp.asarray(basis) for basis in pixel_bases(*nodes, stack.shape[1:]))
    result = xp.empty_like(stack)
    linearly = xp is np and order == 1 and working is np.float32 and _is_exact_at(*stack.shape[1:])
    if linearly:
        # What places differ by is small: in float32 it is as exact as OpenCV's places.
        bases = tuple(basis.astype(np.float32) for basis in bases)
    for frame, field, out in zip(stack, fields, result, strict=True):
        if not field.any():
            out[:] = frame
            continue
        if linearly:
            _move_linearly(frame, field, (bases[0], bases[1]), cval if mode == "constant" else None, out)
            continue
        places = places_of(at_every_pixel(xp.asarray(-np.moveaxis(field, 2, 0)), (bases[0], bases[1])))
        moved = _seen_at(frame.astype(working), places, order)
        if mode == "constant":
            moved = xp.where(inside_frame(places, frame.shape), moved, working(cval))
        if stack.dtype.kind != "f":
            limits = np.iinfo(stack.dtype)
            moved = xp.clip(xp.rint(moved), limits.min, limits.max)
        out[:] = moved.astype(stack.dtype)
    return result


def _move_linearly(
    frame: NDArray[Any],
    field: NDArray[np.float64],
    bases: tuple[NDArray[np.float32], NDArray[np.float32]],
    outside: float | None,
    out: NDArray[Any],
) -> None:
    """Move a frame on the host by a field (gy, gx, 2) into `out`, in few passes."""
    alike = field[0, 0]
    places = at_every_pixel(np.moveaxis(alike - field, 2, 0).astype(np.float32), bases)
    places[0] += (np.arange(frame.shape[0]) - alike[0]).astype(np.float32)[:, None]
    places[1] += (np.arange(frame.shape[1]) - alike[1]).astype(np.float32)
    moved = linear_at(frame.astype(np.float32, copy=False), places)
    if outside is not None:
        moved[~inside_frame(places, frame.shape)] = outside
    if frame.dtype.kind != "f":
        limits = np.iinfo(frame.dtype)
        np.rint(moved, out=moved)
        if outside is not None and not limits.min <= outside <= limits.max:
            np.clip(moved, limits.min, limits.max, out=moved)
    np.copyto(out, moved, casting="unsafe")


def _seen_at(values: Array, places: Array, order: int) -> Array:
    """Values of a frame at places (2, Y, X), those of the edge beyond it."""
    xp = array_namespace(values)
    ndimage, working = ndimage_of(xp), values.dtype
    if order == 3:
        values = ndimage.spline_filter(values, order=3, output=working, mode="mirror")
    border = "nearest" if order < 3 else "mirror"
    # Beyond the edge a spline is mirrored: the nearest pixel is at the edge.
    edge = xp.stack([xp.clip(place, 0, size - 1) for place, size in zip(places, values.shape, strict=True)])
    return ndimage.map_coordinates(values, edge, order=order, mode=border, output=working, prefilter=False)
