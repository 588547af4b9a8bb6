"""Frames looked at through a motion: by splines of SciPy, and where a device's frames are written by its own kernel."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.warping.device_warp import takes, warped
from xcorr_app.registration.warping.matrices import Matrix, about_corner
from xcorr_app.registration.warping.ndimage import ndimage_of

Mode = Literal["constant", "nearest"]
_ORDERS = (0, 1, 3)
_INSIDE = 1e-3
"""Pixels by which a place may be beyond the edge and still count as inside, as in `xcorr_app.apply_shifts`."""


def coefficients(image: Array) -> Array:
    """Coefficients of the cubic spline through an image (h, w), for `seen_through`."""
    xp = array_namespace(image)
    return ndimage_of(xp).spline_filter(image, order=3, output=image.dtype, mode="mirror")


def seen_through(splines: Array, motion: Matrix, order: int = 3, mode: str = "mirror", cval: float = 0.0) -> Array:
    """Values of a frame at the places that a motion about its middle takes every pixel to.

    `splines` are the frame's `coefficients`, or for orders 0 and 1 the frame itself.
    """
    return _transformed(splines, about_corner(motion, splines.shape), order, mode, cval)


def warp_frames(
    stack: Array, matrices: NDArray[np.float64], order: int = 1, mode: Mode = "constant", cval: float = 0.0
) -> Array:
    """Warp frames (T, Y, X) by matrices (T, 3, 3) from places of the result to places of the frames.

    Returns an array of the shape, type and kind of `stack`; integers are rounded half to even and clipped.
    """
    xp = array_namespace(stack)
    if stack.ndim != 3 or 0 in stack.shape:
        raise ShapeError(f"stack has shape {stack.shape}: expected (T, Y, X)")
    if np.shape(matrices) != (len(stack), 3, 3) or not np.isfinite(matrices).all():
        raise ArgumentError(
            f"matrices have shape {np.shape(matrices)}: give a finite 3 x 3 one for each of {len(stack)} frames"
        )
    if order not in _ORDERS or mode not in ("constant", "nearest"):
        raise ArgumentError(f"order {order!r}, mode {mode!r}: use order 0, 1 or 3, and mode 'constant' or 'nearest'")
    if stack.dtype.kind not in "iuf":
        raise DataTypeError(f"stack has dtype {stack.dtype}: convert it to integers or floating point")
    stays = (matrices == np.eye(3)).all(axis=(1, 2))
    if xp is not np and takes(stack.dtype):
        return with_copies(warped(stack, matrices, order, cval if mode == "constant" else None), stack, stays)
    working = np.float64 if stack.dtype.itemsize > 2 and stack.dtype != np.float32 else np.float32
    result = xp.empty_like(stack)
    for frame, matrix, stay, out in zip(stack, matrices, stays, result, strict=True):
        if stay:
            out[:] = frame
            continue
        values = frame.astype(working)
        if order == 3:
            values = ndimage_of(xp).spline_filter(values, order=3, output=working, mode="mirror")
        if mode == "constant" or order < 3:
            seen = _transformed(values, matrix, order, "nearest" if order < 3 else "mirror", 0.0)
        else:
            # Beyond the edge a spline is mirrored: the nearest pixel is at the edge.
            places = zip(_places(xp, matrix, frame.shape), frame.shape, strict=True)
            edge = xp.stack([xp.clip(place, 0, size - 1) for place, size in places])
            seen = ndimage_of(xp).map_coordinates(values, edge, order=3, mode="mirror", output=working, prefilter=False)
        if mode == "constant":
            seen = xp.where(inside_frame(_places(xp, matrix, frame.shape), frame.shape), seen, working(cval))
        if stack.dtype.kind != "f":
            limits = np.iinfo(stack.dtype)
            seen = xp.clip(xp.rint(seen), limits.min, limits.max)
        out[:] = seen.astype(stack.dtype)
    return result


def with_copies(result: Array, stack: Array, stays: NDArray[np.bool_]) -> Array:
    """Put frames that stay where they are (T,) into a result bit by bit."""
    for t in np.flatnonzero(stays).tolist():
        result[t] = stack[t]
    return result


def _transformed(splines: Array, matrix: Matrix, order: int, mode: str, cval: float) -> Array:
    xp = array_namespace(splines)
    return ndimage_of(xp).affine_transform(
        splines,
        xp.asarray(matrix[:2, :2]),
        offset=tuple(matrix[:2, 2]),
        output=splines.dtype,
        order=order,
        mode=mode,
        cval=cval,
        prefilter=False,
    )


def _places(xp: Any, matrix: Matrix, shape: tuple[int, int]) -> list[Array]:
    """Rows and columns (h, w) of the frame that the pixels of the result come from."""
    y, x = xp.arange(shape[0])[:, None], xp.arange(shape[1])[None, :]
    return [float(matrix[axis, 0]) * y + float(matrix[axis, 1]) * x + float(matrix[axis, 2]) for axis in (0, 1)]


def inside_frame(places: Array | list[Array], shape: tuple[int, int], rim: float = -_INSIDE) -> Array:
    """Which places, rows and columns, lie in a frame at least `rim` pixels from its edge."""
    y, x = places[0], places[1]
    return (y >= rim) & (y <= shape[0] - 1 - rim) & (x >= rim) & (x <= shape[1] - 1 - rim)
