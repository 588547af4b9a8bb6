"""One frame moved: whole-pixel copies, or taps applied in blocks of rows that stay in the processor's cache.

A block is read with its halo into a floating-point buffer, edge pixels replicated; the taps of the rows are
applied, then those of the columns; integers are rounded, counted and clipped; the block is written. The rows
of a buffer lie end to end, so one tap is one long run over memory: the few sums at a row's end that mix two
rows are never written. All buffers are made once and reused for every frame of a thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from xcorr_app.registration.interpolation import AxisMove, Order, fourier_move, plan_axis

if TYPE_CHECKING:
    from types import ModuleType

    from xcorr_app.gpu.runtime.arrays import Array

Mode: TypeAlias = Literal["constant", "nearest"]

CACHE_BLOCK = 131072
"""Pixels of a block on the CPU: few enough for its buffers to stay in cache, many enough to hide the cost of a call."""


def working_type(dtype: np.dtype) -> np.dtype:
    """Floating-point type that holds every value of ``dtype`` exactly: float32 where that is enough."""
    exact_in_float32 = dtype.kind in "iu" and dtype.itemsize <= 2
    return np.dtype(np.float32 if exact_in_float32 or dtype in (np.float16, np.float32) else np.float64)


class Buffers:
    """Scratch memory of one thread, grown when a frame needs more and kept for the next."""

    def __init__(self, xp: ModuleType, dtype: np.dtype) -> None:
        self.xp = xp
        self.dtype = dtype
        self._held: dict[str, Array] = {}

    def take(self, name: str, size: int) -> Array:
        """Lend the first ``size`` elements of the buffer ``name``; they hold whatever was left there."""
        held = self._held.get(name)
        if held is None or held.size < size:
            held = self._held[name] = self.xp.empty(size, dtype=self.dtype)
        return held[:size]


@dataclass(frozen=True)
class Translator:
    """Moves frames of one shape and type by an `order` and `mode` of `apply_shifts`; one instance a thread."""

    order: Order
    mode: Mode
    cval: float
    buffers: Buffers

    def move(self, frame: Array, shift: tuple[float, float], out: Array) -> Array | int:
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
            moved = self._fourier(frame, rows, columns)[top:bottom, left:right]
            clipped: Array | int = 0
            if target.dtype.kind != "f":
                self.buffers.xp.rint(moved, out=moved)
                clipped = self._clip(moved, target.dtype)
            target[...] = moved
            return clipped
        return self._taps(frame, rows, columns, target, top, left)

    def _taps(self, frame: Array, rows: AxisMove, columns: AxisMove, target: Array, top: int, left: int) -> Array | int:
        """Apply the taps of both axes block by block; ``target`` starts at output pixel (top, left)."""
        xp, take = self.buffers.xp, self.buffers.take
        height, width = target.shape
        row_taps, column_taps = len(rows.weights), len(columns.weights)
        padded = width + column_taps - 1
        # A device wants few large launches, a cache small blocks.
        block = max(1, CACHE_BLOCK // padded) if xp is np else height
        rounds = target.dtype.kind != "f"
        overshoots = rounds and min(rows.weights + columns.weights) < 0.0
        clipped: Array | int = 0
        for begin in range(0, height, block):
            count = min(block, height - begin)
            size = count * padded
            values = take("source", (count + row_taps - 1) * padded)
            spare, scratch = take("result", size), take("scratch", size)
            copy_replicated(values.reshape(-1, padded), frame, top + begin + rows.start, left + columns.start)
            if row_taps > 1:
                _weigh(values, padded, rows.weights, spare, scratch, xp)
                values, spare = spare, values[:size]
            length = size - (column_taps - 1)
            if column_taps > 1:
                _weigh(values, 1, columns.weights, spare[:length], scratch[:length], xp)
                values = spare
            if rounds:
                xp.rint(values[:length], out=values[:length])
            sums = values.reshape(count, padded)[:, :width]
            # Most frames fit their type: two passes over the run tell, where clipping and counting take four.
            if overshoots and not (xp is np and _fits(values[:length], target.dtype)):
                clipped = clipped + self._clip(sums, target.dtype)
            target[begin : begin + count] = sums
        return clipped

    def _clip(self, values: Array, dtype: np.dtype) -> Array | int:
        """Clip floating-point ``values`` in place to the range of the integer ``dtype``; return how many changed."""
        xp = self.buffers.xp
        limits = np.iinfo(dtype)
        below, above = values < limits.min, values > limits.max
        xp.clip(values, limits.min, limits.max, out=values)
        return xp.count_nonzero(below) + xp.count_nonzero(above)

    def _fourier(self, frame: Array, rows: AxisMove, columns: AxisMove) -> Array:
        """Interpolate a whole frame by Fourier; non-finite pixels are bridged by the mean and marked again."""
        xp = self.buffers.xp
        values = frame.astype(self.buffers.dtype)
        damaged = ~xp.isfinite(values)
        if not damaged.any():
            return fourier_move(fourier_move(values, rows, 0), columns, 1)
        sound = values[~damaged]
        values[damaged] = float(sound.mean(dtype=xp.float64)) if sound.size else 0.0
        moved = fourier_move(fourier_move(values, rows, 0), columns, 1)
        height, width = frame.shape
        marks = xp.empty_like(damaged)
        nearest_row, nearest_column = (plan_axis(n, m.shift, 0) for n, m in ((height, rows), (width, columns)))
        copy_replicated(marks, damaged, nearest_row.start, nearest_column.start)
        moved[marks] = xp.nan
        return moved


def copy_replicated(target: Array, frame: Array, row: int, column: int) -> None:
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


def _fits(values: Array, dtype: np.dtype) -> bool:
    """Whether all ``values`` lie in the range of the integer ``dtype``."""
    limits = np.iinfo(dtype)
    return bool(values.min() >= limits.min and values.max() <= limits.max)


def _weigh(values: Array, stride: int, weights: tuple[float, ...], out: Array, scratch: Array, xp: ModuleType) -> None:
    """Set ``out[i] = sum_k weights[k] * values[i + k * stride]``; ``scratch`` is as long as ``out``."""
    length = out.size
    xp.multiply(values[:length], weights[0], out=out)
    for tap, weight in enumerate(weights[1:], start=1):
        xp.multiply(values[tap * stride : tap * stride + length], weight, out=scratch)
        xp.add(out, scratch, out=out)
