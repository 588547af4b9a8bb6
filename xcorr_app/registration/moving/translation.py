"""One frame moved on the CPU: whole-pixel copies, or taps applied in blocks of rows that stay in the processor's cache.

A block is read with its halo into a floating-point buffer, edge pixels replicated; OpenCV applies the taps of both
axes; integers are rounded, counted and clipped; the block is written. Two taps along each axis that stay inside the
frame need neither: they are weighted sums of the frame with itself, a pixel further, that are read and written as
they are stored. All buffers are made once and reused for every frame of a thread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, fft_namespace
from xcorr_app.registration.moving.interpolation import AxisMove, Order, inside_each, plan_axis, snap_each

Mode: TypeAlias = Literal["constant", "nearest"]
Frame: TypeAlias = NDArray[Any]

CACHE_BLOCK = 131072
"""Pixels of a block: few enough for its buffers to stay in cache, many enough to hide the cost of a call."""


def working_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Floating-point type that holds every value of ``dtype`` exactly: float32 where that is enough."""
    exact_in_float32 = dtype.kind in "iu" and dtype.itemsize <= 2
    return np.dtype(np.float32 if exact_in_float32 or dtype in (np.float16, np.float32) else np.float64)


_DEPTHS = {
    np.dtype(np.int8): cv2.CV_8S,
    np.dtype(np.uint8): cv2.CV_8U,
    np.dtype(np.int16): cv2.CV_16S,
    np.dtype(np.uint16): cv2.CV_16U,
    np.dtype(np.float32): cv2.CV_32F,
    np.dtype(np.float64): cv2.CV_64F,
}
"""Types of which OpenCV makes weighted sums in the working type, and writes them rounded half to even."""


class Buffers:
    """Scratch memory of one thread, grown when a frame needs more and kept for the next."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self._held: dict[str, Frame] = {}

    def take(self, name: str, rows: int, columns: int) -> Frame:
        """Lend the buffer ``name``; its elements hold whatever was left there."""
        held, size = self._held.get(name), rows * columns
        if held is None or held.size < size:
            held = self._held[name] = np.empty(size, dtype=self.dtype)
        return held[:size].reshape(rows, columns)


@dataclass(frozen=True)
class Translator:
    """Moves frames of one shape and type by an `order` and `mode` of `apply_shifts`; one instance a thread."""

    order: Order
    mode: Mode
    cval: float
    buffers: Buffers

    def move(self, frame: Frame, shift: tuple[float, float], out: Frame) -> int:
        """Write ``frame`` (Y, X) moved by ``shift`` (row, column) to ``out``; return how many pixels were clipped."""
        height, width = frame.shape
        rows = plan_axis(height, shift[0], self.order)
        columns = plan_axis(width, shift[1], self.order)
        top, bottom, left, right = 0, height, 0, width
        if self.mode == "constant":
            top, bottom, left, right = rows.first, rows.stop, columns.first, columns.stop
            if top == bottom or left == right:
                out[...] = self.cval
                return 0
            out[:top] = self.cval
            out[bottom:] = self.cval
            out[top:bottom, :left] = self.cval
            out[top:bottom, right:] = self.cval
        target = out[top:bottom, left:right]
        if rows.is_whole and columns.is_whole:
            copy_replicated(target, frame, top + rows.start, left + columns.start)
            return 0
        if self.order == "fourier":
            moved = fourier_moved(frame, np.array((rows.shift, columns.shift)), self.buffers.dtype)
            return _store(moved[top:bottom, left:right], target, overshoots=True)
        return self._taps(frame, rows, columns, target, top, left)

    def _taps(self, frame: Frame, rows: AxisMove, columns: AxisMove, target: Frame, top: int, left: int) -> int:
        """Apply the taps of both axes block by block; ``target`` starts at output pixel (top, left)."""
        height, width = target.shape
        row, column = top + rows.start, left + columns.start
        last_row, last_column = row + height + len(rows.weights) - 2, column + width + len(columns.weights) - 2
        is_inside = min(row, column) >= 0 and last_row < frame.shape[0] and last_column < frame.shape[1]
        native = frame.dtype.newbyteorder("=")
        if is_inside and native in _DEPTHS and max(len(rows.weights), len(columns.weights)) == 2:
            window = frame[row : last_row + 1, column : last_column + 1].astype(native, copy=False)
            # OpenCV writes rows of pixels in the machine's order of bytes; the result is the same in any other.
            is_plain = target.dtype == native and target.strides[0] > 0 and target.strides[1] == target.itemsize
            moved = target if is_plain else np.empty(target.shape, native)
            self._two_taps(window, rows.weights, columns.weights, moved)
            if not is_plain:
                target[...] = moved
            return 0
        row_taps, column_taps = (np.array(move.weights, self.buffers.dtype) for move in (rows, columns))
        padded = width + column_taps.size - 1
        block = max(1, CACHE_BLOCK // padded)
        overshoots = min(rows.weights + columns.weights) < 0.0
        clipped = 0
        for begin in range(0, height, block):
            count = min(block, height - begin)
            values = self.buffers.take("source", count + row_taps.size - 1, padded)
            sums = self.buffers.take("sums", *values.shape)
            copy_replicated(values, frame, row + begin, column)
            # With the anchor at the first tap, what OpenCV makes of the border is left out below.
            cv2.sepFilter2D(values, -1, column_taps, row_taps, sums, (0, 0), 0.0, cv2.BORDER_REPLICATE)
            clipped += _store(sums[:count, :width], target[begin : begin + count], overshoots=overshoots)
        return clipped

    def _two_taps(self, window: Frame, rows: tuple[float, ...], columns: tuple[float, ...], target: Frame) -> None:
        """Apply two taps along rows, columns or both to what they reach of a frame; no such mean can be clipped."""
        height, width = target.shape
        block = max(1, CACHE_BLOCK // width)
        for begin in range(0, height, block):
            count = min(block, height - begin)
            values, out = window[begin : begin + count + len(rows) - 1], target[begin : begin + count]
            if len(columns) == 2:
                along = out if len(rows) == 1 else self.buffers.take("sums", len(values), width)
                _weighted(values[:, :-1], values[:, 1:], columns, along)
                values = along
            if len(rows) == 2:
                _weighted(values[:-1], values[1:], rows, out)


def _weighted(one: Frame, other: Frame, weights: tuple[float, ...], out: Frame) -> None:
    cv2.addWeighted(one, weights[0], other, weights[1], 0.0, out, _DEPTHS[out.dtype])


def _store(values: Frame, target: Frame, *, overshoots: bool) -> int:
    """Write floating-point ``values``, which are overwritten; integers rounded and clipped. Return how many were."""
    clipped = 0
    if target.dtype.kind != "f":
        np.rint(values, out=values)
        limits = np.iinfo(target.dtype)
        # Most frames fit their type: two passes tell, where clipping and counting take four.
        if overshoots and not (values.min() >= limits.min and values.max() <= limits.max):
            clipped = int(np.count_nonzero((values < limits.min) | (values > limits.max)))
            np.clip(values, limits.min, limits.max, out=values)
    target[...] = values
    return clipped


def copy_replicated(target: Frame, frame: Frame, row: int, column: int) -> None:
    """Copy the window of ``frame`` from (row, column) on into ``target``; edge pixels go on beyond the frame.

    Element types may differ (the copy converts); with equal types every bit is kept.
    """
    (rows_from, rows_to), (columns_from, columns_to) = (
        _overlap(first, wanted, length)
        for first, wanted, length in zip((row, column), target.shape, frame.shape, strict=True)
    )
    row_start = min(max(row + rows_from, 0), frame.shape[0] - 1)
    column_start = min(max(column + columns_from, 0), frame.shape[1] - 1)
    body = target[rows_from:rows_to]
    body[:, columns_from:columns_to] = frame[
        row_start : row_start + rows_to - rows_from, column_start : column_start + columns_to - columns_from
    ]
    body[:, :columns_from] = body[:, columns_from : columns_from + 1]
    body[:, columns_to:] = body[:, columns_to - 1 : columns_to]
    target[:rows_from] = target[rows_from : rows_from + 1]
    target[rows_to:] = target[rows_to - 1 : rows_to]


def _overlap(first: int, wanted: int, length: int) -> tuple[int, int]:
    """Return the part of ``wanted`` indices from ``first`` on that lies on ``length`` samples, at least one."""
    begin = min(max(-first, 0), wanted - 1)
    return begin, max(min(length - first, wanted), begin + 1)


def fourier_moved(frames: Array, shifts: NDArray[np.float64], dtype: np.dtype[Any]) -> Array:
    """Frames (..., Y, X) moved by (..., 2) pixels, in the floating-point type `dtype`, neither rounded nor clipped.

    By trigonometric interpolation of the mirrored frame. The ``n`` samples of an axis are mirrored at half a pixel
    beyond their ends (period ``2n``), so nothing wraps around from the far side and no step arises at the edge. With
    ``X[k] = sum_j x[j] cos(pi k (j + 1/2) / n)`` (the DCT-II) the value at position ``p`` is
    ``X[0] / n + 2 / n sum_{k=1}^{n-1} X[k] cos(pi k (p + 1/2) / n)``. Here it is computed as a phase ramp on a real FFT
    of the mirrored samples; at the one frequency where a ramp would be ambiguous (``k = n``) the mirrored spectrum is
    zero. A position outside ``[0, n - 1]`` takes the sample at the end next to it.

    Pixels that are not finite are bridged by the mean of the others, and become NaN where the nearest input pixel was
    one.
    """
    values = frames.astype(dtype)
    if frames.dtype.kind != "f" or bool((finite := array_namespace(values).isfinite(values)).all()):
        return _moved(_moved(values, shifts[..., 0], -2), shifts[..., 1], -1)
    moved = _moved(_moved(bridged(values, finite), shifts[..., 0], -2), shifts[..., 1], -1)
    marks = nearest_marks(~finite.reshape(-1, *values.shape[-2:]), shifts.reshape(-1, 2))
    moved[marks.reshape(values.shape)] = np.nan
    return moved


def _moved(values: Array, shifts: NDArray[np.float64], axis: int) -> Array:
    """Move each of values (..., Y, X) by its shift along one of the last two axes."""
    n = values.shape[axis]
    held = snap_each(np.clip(shifts, -(n + 2.0), n + 2.0))  # farther away all of a frame lies outside
    if not held.any():
        return values
    xp, fft = array_namespace(values), fft_namespace(values)
    spectra = fft.rfft(xp.concatenate([values, xp.flip(values, axis)], axis=axis), axis=axis)
    across = -3 - axis
    # The phase is made in float64: at k = n it reaches pi * shift, too much for single precision.
    phases = xp.asarray(-1j * (math.pi * held / n))[..., None] * xp.arange(n + 1)
    spectra *= xp.expand_dims(xp.exp(phases).astype(spectra.dtype), across)
    moved = fft.irfft(spectra, n=2 * n, axis=axis)[(..., slice(n)) if axis == -1 else (..., slice(n), slice(None))]
    first, stop = (xp.asarray(end)[..., None] for end in inside_each(n, held))
    places = xp.arange(n)
    ends = xp.take(values, xp.asarray([0]), axis), xp.take(values, xp.asarray([n - 1]), axis)
    for outside, end in zip((places < first, places >= stop), ends, strict=True):
        xp.copyto(moved, end, where=xp.broadcast_to(xp.expand_dims(outside, across), moved.shape))
    return moved


def bridged(frames: Array, finite: Array) -> Array:
    """Frames (..., Y, X) with the mean of each one's finite pixels, or zero, in place of the others."""
    xp = array_namespace(frames)
    sound = xp.where(finite, frames, 0)
    number = xp.maximum(finite.sum(axis=(-2, -1), keepdims=True), 1)
    mean = (sound.sum(axis=(-2, -1), keepdims=True, dtype=xp.float64) / number).astype(frames.dtype)
    return xp.where(finite, frames, mean)


def nearest_marks(marks: Array, shifts: NDArray[np.float64]) -> Array:
    """`marks` (T, Y, X) of the pixel nearest to where each pixel comes from; edge pixels go on for ever."""
    xp = array_namespace(marks)
    count, height, width = marks.shape
    whole = np.rint(np.clip(shifts, -(2.0**30), 2.0**30)).astype(np.int64)
    rows, columns = (
        xp.asarray(np.clip(np.arange(n) - whole[:, axis, None], 0, n - 1)) for axis, n in ((0, height), (1, width))
    )
    return marks[xp.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]]
