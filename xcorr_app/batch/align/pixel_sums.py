"""Sums of values and of their squares over frames, pixel by pixel, on the host or on the device."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array, to_host
from xcorr_app.registration.moving.translation import working_type


class PixelSums:
    """Sums of values and of their squares, pixel by pixel, less a first frame so that float32 is exact enough."""

    def __init__(self, band: slice) -> None:
        self._band = band
        self._base: Any = None
        self._sum: Any = None
        self._squares: Any = None
        self._missing: Any = 0
        self._is_exact = False
        self._lines: list[Array] = []

    def add(self, frames: Array, mask: Array | None) -> None:
        """Take in frames; `mask` (n, Y, X) is where they hold moved pixels."""
        xp = array_namespace(frames)
        kind = working_type(np.dtype(frames.dtype))
        if self._base is None:
            self._base = frames[0].astype(kind)
            self._sum, self._squares = xp.zeros(self._base.shape), xp.zeros(self._base.shape)
            if frames.dtype.kind == "f":
                self._base = xp.where(xp.isfinite(self._base), self._base, 0)
        if frames.dtype.kind == "f":
            finite = xp.isfinite(frames)
            missing = ~finite if mask is None else ~finite & mask
            self._missing = self._missing + missing.sum(axis=0)
            values = xp.where(finite, frames - self._base, 0)
        else:
            values = xp.subtract(frames, self._base, dtype=kind)
        if mask is not None:
            values *= mask
        # Sums along the frames, not products with a matrix of ones: those would take every core for a moment.
        self._sum += values.sum(axis=0)
        xp.square(values, out=values)
        self._squares += values.sum(axis=0)
        self._lines.append(frames[:, self._band].mean(axis=1, dtype=np.float64).astype(np.float32))

    def are_exact_with(self, frames: Array) -> bool:
        """Whether frames are on the host, finite and of so few bits that float64 sums of them need no first frame."""
        if is_device_array(frames) or frames.dtype not in (np.uint8, np.uint16, np.float32):
            return False
        return (self._base is None or self._is_exact) and (frames.dtype.kind == "u" or bool(np.isfinite(frames).all()))

    def add_exactly(self, frames: NDArray[Any], extents: NDArray[np.int64] | None) -> None:
        """Take in such frames; `extents` (n, 4) are first row, stop, first column, stop of what they cover."""
        if self._base is None:
            self._base, self._is_exact = np.zeros(frames.shape[1:]), True
            self._sum, self._squares = np.zeros(self._base.shape), np.zeros(self._base.shape)
        for i, frame in enumerate(frames):
            top, bottom, left, right = (0, *frame.shape[:1], 0, frame.shape[1]) if extents is None else extents[i]
            if bottom > top and right > left:
                part = (slice(top, bottom), slice(left, right))
                cv2.accumulate(frame[part], self._sum[part])
                cv2.accumulateSquare(frame[part], self._squares[part])
        self._lines.append(frames[:, self._band].mean(axis=1, dtype=np.float64).astype(np.float32))

    def to_host(self) -> None:
        """Go on with NumPy arrays."""
        if self._base is not None:
            self._base, self._sum, self._squares = (to_host(part) for part in (self._base, self._sum, self._squares))
        self._missing = self._missing if isinstance(self._missing, int) else to_host(self._missing)
        self._lines = [to_host(line) for line in self._lines]

    def kymograph(self) -> NDArray[np.float32]:
        """One line a frame; of what is on the host."""
        lines: NDArray[np.float32] = np.concatenate(self._lines)
        return lines

    def projections(self, covered: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Mean and standard deviation over frames that cover every pixel, or each, so many times.

        NaN where none has a value. The sums, which are on the host, are used up.
        """
        number = covered - self._missing
        known = np.maximum(number, 1)
        base, mean, squares = self._base, self._sum, self._squares
        self._base = self._sum = self._squares = None
        with np.errstate(over="ignore", invalid="ignore"):
            mean /= known
            squares /= known
            squares -= mean**2
            deviation = np.sqrt(np.maximum(squares, 0.0, out=squares), out=squares).astype(np.float32)
            mean += base
            return (
                np.where(number > 0, mean.astype(np.float32), np.float32(np.nan)),
                np.where(number > 0, deviation, np.float32(np.nan)),
            )
