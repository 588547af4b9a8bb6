"""Moving the frames of a stack by known shifts.

The sign is scikit-image's: a shift is what is added to a frame's coordinates, ``out[y, x] = frame[y - dy, x -
dx]``, as ``scipy.ndimage.shift(frame, (dy, dx))`` does.

What lies outside
    The position ``y - dy`` is inside where ``0 <= y - dy <= Y - 1`` to within 0.001 px, columns alike. Under
    ``border="constant"`` a pixel with either position outside becomes ``cval``, whatever the method; nothing is
    blended with ``cval``. Under ``border="nearest"`` the frame goes on for ever with the values of its edge pixels
    (Fourier: a position outside takes the sample at the edge next to it). Taps of an inside position that reach
    beyond the edge read the edge pixel.
Whole pixels
    A shift within 1e-9 px of whole pixels on both axes copies every pixel bit by bit, whatever the method.
Integers
    Rounded half to even, then clipped to the type's range; cubic, Lanczos and Fourier can overshoot and are
    counted.
Arithmetic
    float32 for types of up to 16 bits and float32, float64 for int32, uint32 and float64.
NaN and infinity
    Spread only as far as the taps reach, and not at all along an axis that moves by whole pixels. Fourier
    interpolation, whose reach is the whole frame, replaces them by the mean of the finite pixels and writes
    NaN where the nearest input pixel was not finite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from xcorr_app.arguments import as_number, renamed
from xcorr_app.arrays.axes import Axes, named_axes
from xcorr_app.arrays.kinds import as_array, exact_float64, is_lazy, keeps_labels, rounded_to
from xcorr_app.arrays.lazy import moved_by_frame
from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array
from xcorr_app.registration.moving.device_moving import move_on_device
from xcorr_app.registration.moving.interpolation import (
    LANCZOS_RADIUS,
    Order,
    OrderName,
    check_order,
    inside_each,
    order_of,
)
from xcorr_app.registration.moving.translation import Buffers, Mode, Translator, working_type
from xcorr_app.registration.results.results import ShiftResult
from xcorr_app.system import worker_count

Border: TypeAlias = Literal["constant", "nearest", "reflect", "mirror", "wrap"]
_PADS = {"reflect": "symmetric", "mirror": "reflect", "wrap": "wrap"}
"""What NumPy calls the borders that a frame is padded for."""
_SUPPORTED = tuple(
    np.dtype(name) for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "float32", "float64")
)


@renamed(order="interpolation", mode="border")
@keeps_labels
def apply_shifts(
    stack: Array,
    shifts: npt.ArrayLike | ShiftResult,
    interpolation: OrderName | Order = "linear",
    border: Border = "constant",
    cval: float = 0.0,
    *,
    axes: str | None = None,
) -> Array:
    """Move each frame by its shift: whole pixels are copied, fractions interpolated.

    Parameters
    ----------
    stack : (T, Y, X) or (Y, X) array_like
        NumPy, CuPy, or what :mod:`xcorr_app.arrays.kinds` takes; bool, integers (of 64
        bits with values up to 2**53) or floating point. Of a dask array, the result is a dask array.
    shifts : (T, 2) or (2,) array of float, or ShiftResult
        Rows and columns, in pixels, to add to each frame; in host memory. ``(2,)`` moves every frame alike. Of a
        result, of this stack or of another channel, ``result.applied()`` is taken.
    interpolation : {"nearest", "linear", "cubic", "lanczos", "fourier", 0, 1, 3}
        Nearest (0), linear (1), cubic convolution (3; Keys 1981, doi:10.1109/TASSP.1981.1163711), Lanczos with
        radius 4, or trigonometric interpolation of the mirrored frame.
    border : {"constant", "nearest", "reflect", "mirror", "wrap"}
        What samples from outside the frame become: ``constant`` and ``nearest`` as the head of this module defines
        them, the others as SciPy's filters name them (abc|cba, abc|ba, abc|abc).
    cval : float
        Their value under ``border="constant"``, in the units of ``stack``.
    axes : str, optional
        A letter for each axis of a stack that is not (T, Y, X): T, Z, C, Y, X, such as ``"TCYX"``; the dimensions of an
        xarray name theirs. All planes of a frame, along T or, with only one time point, along Z, are moved alike.

    Returns
    -------
    array
        A new array of the shape and type of ``stack``, NumPy or CuPy (dask of dask); its memory never overlaps with it.

    Raises
    ------
    ArgumentError
        A shift is not finite; ``interpolation`` or ``border`` is unknown; ``cval`` does not fit the type of ``stack``.
    ShapeError
        ``stack`` is not two- or three-dimensional or is empty, or ``shifts`` does not match it.
    DataTypeError
        ``stack`` is not a NumPy or CuPy array of a supported type, or ``shifts`` is in device memory.
    DeviceMemoryError
        The result of a CuPy array does not fit into device memory.

    Examples
    --------
    >>> import numpy as np
    >>> apply_shifts(np.array([[0, 10, 20, 30]], dtype=np.uint8), (0, 0.5))
    array([[ 0,  5, 15, 25]], dtype=uint8)
    """
    stack, axes = named_axes(stack, axes)
    if isinstance(shifts, ShiftResult):
        shifts = shifts.applied()
    order = order_of(interpolation)
    if is_lazy(stack):
        return _lazily(stack, shifts, order, border, cval, axes)
    is_mask = getattr(getattr(stack, "dtype", None), "kind", "") == "b"
    stack = as_array(stack, "stack")
    if axes is not None and axes not in ("TYX", "YX"):
        named = Axes(axes, stack.shape)
        if 0 in stack.shape:
            raise ShapeError(f"stack has shape {stack.shape}: there is no pixel to move")
        moves = _checked_shifts(shifts, stack.shape[axes.index(named.along)] if named.along else 1)
        moved = _moved_planes(stack, moves, named.order, order, border, cval)
    else:
        moved = _moved(stack, shifts, order, border, cval)
    return moved.view(bool) if is_mask else moved


def _moved_planes(
    stack: Array, shifts: npt.NDArray[np.float64], axes: Sequence[int], order: Order, mode: Border, cval: float
) -> Array:
    """Move all planes of a frame alike; `axes` are those of the frames, if there are any, others, rows and columns."""
    ordered = stack.transpose(axes)
    planes = ordered.reshape(-1, *ordered.shape[-2:])
    moved = _moved(planes, np.repeat(shifts, planes.shape[0] // len(shifts), axis=0), order, mode, cval)
    return moved.reshape(ordered.shape).transpose(np.argsort(axes).tolist())


def _lazily(stack: Any, shifts: npt.ArrayLike, order: Order, mode: Border, cval: float, axes: str | None) -> Any:
    """Move the blocks of a dask array when they are computed; what is wrong with arguments is told at once."""
    names = axes or ("TYX" if stack.ndim == 3 else "YX")
    known = Axes(names, stack.shape)
    if stack.ndim > 3 or axes is not None:
        last = stack.ndim - 2, stack.ndim - 1
        if (names.index("Y"), names.index("X")) != last:
            raise ShapeError(f"axes {names!r}: a dask array's rows and columns must be its last axes: transpose it")
    along = names.index(known.along) if known.along else None
    moves = _checked_shifts(shifts, 1 if along is None else stack.shape[along])
    stored = np.uint8 if stack.dtype.kind == "b" else stack.dtype
    _moved(np.zeros_like(stack._meta, shape=(1, 1, 1)).astype(stored), (0, 0), order, mode, cval)

    def move(block: Array, shifts: Array) -> Array:
        # A block may hold one time of many, and the frames' axis must still be that of the whole.
        is_mask, block = block.dtype.kind == "b", as_array(block, "stack")
        moved = _moved_planes(block, _checked_shifts(shifts, None), known.order, order, mode, cval)
        return moved.view(bool) if is_mask else moved

    return moved_by_frame(move, stack, moves, along)


def _moved(stack: Array, shifts: npt.ArrayLike, order: Order, mode: Border, cval: float) -> Array:
    if stack.dtype.kind in "iu" and stack.dtype.itemsize == 8:
        fill = _checked_cval(cval, stack.dtype)
        return rounded_to(_moved(exact_float64(stack, "stack"), shifts, order, mode, fill), stack.dtype)
    if stack.ndim == 2:
        moves = _checked_shifts(shifts, 1)
        return shift_frames(stack[None], moves, order=order, mode=mode, cval=cval, counts=False)[0][0]
    return shift_frames(stack, shifts, order=order, mode=mode, cval=cval, counts=False)[0]


def shift_frames(
    frames: Array,
    shifts: npt.ArrayLike,
    *,
    order: Order = 1,
    mode: Border = "constant",
    cval: float = 0.0,
    workers: int | None = None,
    counts: bool = True,
) -> tuple[Array, int]:
    """Move frames (T, Y, X) as `apply_shifts` does; returns them and the number of pixels that were clipped.

    `workers` is the number of threads on the CPU, by default one for each core this process may use; the result does
    not depend on it.
    A device's clipped pixels need not be counted (`counts`): the host waits for them.

    Examples
    --------
    >>> import numpy as np
    >>> step = np.array([[[0, 0, 255, 255]]], dtype=np.uint8)
    >>> shift_frames(step, (0, 0.5), order=3)
    (array([[[  0,   0, 128, 255]]], dtype=uint8), 2)
    """
    xp = array_namespace(frames)
    _check_frames(frames)
    moves = _checked_shifts(shifts, frames.shape[0])
    check_order(order)
    if mode not in get_args(Border):
        raise ArgumentError(f"border={mode!r} is unknown: choose one of {', '.join(map(repr, get_args(Border)))}")
    fill = _checked_cval(cval, np.dtype(frames.dtype))
    if mode in _PADS:
        return _moved_padded(frames, moves, order, mode, workers, counts=counts)
    if xp is not np:
        return move_on_device(frames, moves, order, fill if mode == "constant" else None, counts=counts)
    result = np.empty(frames.shape, dtype=frames.dtype)
    threads = min(worker_count() if workers is None else workers, len(moves))

    def move_every(first: int) -> int:
        outside: Mode = "constant" if mode == "constant" else "nearest"
        translator = Translator(order, outside, fill, Buffers(working_type(frames.dtype)))
        # NaN and infinity in the data are the caller's own: no warning for their sums.
        with np.errstate(invalid="ignore", over="ignore"):
            mine = range(first, len(moves), threads)
            return sum(translator.move(frames[t], (moves[t, 0], moves[t, 1]), result[t]) for t in mine)

    if threads == 1:
        return result, move_every(0)
    with ThreadPoolExecutor(threads, thread_name_prefix="shift_frames") as pool:
        return result, sum(pool.map(move_every, range(threads)))


def _moved_padded(
    frames: Array,
    moves: npt.NDArray[np.float64],
    order: Order,
    mode: Border,
    workers: int | None,
    *,
    counts: bool,
) -> tuple[Array, int]:
    """Move frames amid what lies beyond them, by shifts within the period with which that repeats."""
    shape = np.array(frames.shape[1:])
    period = {"wrap": shape, "reflect": 2 * shape, "mirror": np.maximum(2 * shape - 2, 1)}[mode]
    moves = (moves + period / 2) % period - period / 2
    rows, columns = (np.ceil(np.abs(moves).max(axis=0)) + LANCZOS_RADIUS).astype(int).tolist()
    wide = array_namespace(frames).pad(frames, ((0, 0), (rows, rows), (columns, columns)), mode=_PADS[mode])
    inside = (slice(None), slice(rows, rows + shape[0]), slice(columns, columns + shape[1]))
    moved, clipped = shift_frames(wide, moves, order=order, mode="nearest", workers=workers, counts=counts)
    if clipped:  # of what lies beyond, too: rounding alone changes no pixel by more than a half
        exact, _ = shift_frames(wide.astype(np.float64), moves, order=order, mode="nearest", workers=workers)
        clipped = int((abs(exact - moved)[inside] > 0.501).sum())
    return array_namespace(frames).ascontiguousarray(moved[inside]), clipped


def common_area(shape: tuple[int, int], shifts: npt.ArrayLike) -> tuple[slice, slice]:
    """Largest rectangle (rows, columns) whose pixels come from inside the frame in every shifted frame.

    Inside is as ``border="constant"`` defines it, so no pixel there is ever ``cval``. Raises ArgumentError where there
    is none.

    Examples
    --------
    >>> common_area((64, 48), [(0, 0), (2.5, -1)])
    (slice(3, 64, None), slice(0, 47, None))
    """
    moves = _checked_shifts(shifts, None)
    slices = []
    for axis, name in enumerate(("row", "column")):
        length = int(shape[axis])
        firsts, stops = inside_each(length, moves[:, axis])
        first, stop = int(firsts.max()), int(stops.min())
        if first >= stop:
            low, high = moves[:, axis].min(), moves[:, axis].max()
            raise ArgumentError(
                f"no {name} is inside all {len(moves)} shifted frames: {length} {name}s, shifts from "
                f"{low:g} to {high:g} px; leave out frames with large shifts, or keep the border instead of cropping"
            )
        slices.append(slice(first, stop))
    return slices[0], slices[1]


def _check_frames(frames: Array) -> None:
    if frames.ndim != 3:
        raise ShapeError(f"stack has shape {frames.shape}: expected (Y, X) or (T, Y, X)")
    if 0 in frames.shape:
        raise ShapeError(f"stack has shape {frames.shape}: there is no pixel to move")
    if np.dtype(frames.dtype).newbyteorder("=") not in _SUPPORTED:
        names = ", ".join(map(str, _SUPPORTED))
        raise DataTypeError(f"stack has dtype {frames.dtype}: convert it to one of {names}")


def _checked_shifts(shifts: npt.ArrayLike, count: int | None) -> npt.NDArray[np.float64]:
    """``shifts`` as a finite (T, 2) array; ``count`` frames are expected unless it is None."""
    if is_device_array(shifts):
        raise DataTypeError("shifts are in device memory: pass shifts.get(), they steer the host")
    if isinstance(shifts, np.ma.MaskedArray) or np.iscomplexobj(shifts):
        raise DataTypeError("shifts are masked or complex: give real numbers, (row, column) for each frame")
    try:
        moves = np.asarray(shifts, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError("shifts: expected numbers, (row, column) for each frame") from error
    if moves.shape == (2,):
        moves = np.broadcast_to(moves, (1 if count is None else count, 2))
    if moves.ndim != 2 or moves.shape[1] != 2 or len(moves) == 0 or (count is not None and len(moves) != count):
        wanted = "(T, 2)" if count is None else f"({count}, 2)"
        raise ShapeError(f"shifts has shape {moves.shape}: expected {wanted} or (2,)")
    bad = np.flatnonzero(~np.isfinite(moves).all(axis=1))
    if bad.size:
        raise ArgumentError(f"shifts[{bad[0]}] is {moves[bad[0]]}, not finite: give it a number or leave out the frame")
    return moves


def _checked_cval(cval: float, dtype: np.dtype) -> float:
    """``cval`` unless an integer type could not hold it exactly."""
    value = as_number(cval, "cval")
    if dtype.kind == "f":
        return value
    limits = np.iinfo(dtype)
    if not math.isfinite(value) or value != math.floor(value) or not limits.min <= cval <= limits.max:
        raise ArgumentError(f"cval={cval} is no {dtype} value: choose a whole number from {limits.min} to {limits.max}")
    return int(cval)
