"""The window of shifts: which ``(dy, dx)`` a correlation plane covers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ArgumentError


@dataclass(frozen=True, slots=True)
class ShiftWindow:
    """An inclusive rectangle of integer shifts, in pixels.

    Parameters
    ----------
    dy_min, dy_max, dx_min, dx_max : int
        Smallest and largest shift along rows and along columns.

    Raises
    ------
    ArgumentError
        If the rectangle is empty, or a shift is not a whole number.
    """

    dy_min: int
    dy_max: int
    dx_min: int
    dx_max: int

    def __post_init__(self) -> None:
        shifts = self.dy_min, self.dy_max, self.dx_min, self.dx_max
        if not all(isinstance(shift, (int, np.integer)) for shift in shifts):
            raise ArgumentError(f"{self}: a window is made of whole pixels, give integers")
        if self.dy_min > self.dy_max or self.dx_min > self.dx_max:
            raise ArgumentError(f"empty shift window {self}: each minimum must not exceed its maximum")

    @classmethod
    def symmetric(cls, max_dy: int, max_dx: int) -> ShiftWindow:
        """All shifts with ``|dy| <= max_dy`` and ``|dx| <= max_dx``."""
        return cls(-max_dy, max_dy, -max_dx, max_dx)

    @classmethod
    def full(cls, left_shape: tuple[int, int], right_shape: tuple[int, int]) -> ShiftWindow:
        """Every shift at which the two matrices overlap in at least one element."""
        (left_rows, left_columns), (right_rows, right_columns) = left_shape, right_shape
        return cls(1 - right_rows, left_rows - 1, 1 - right_columns, left_columns - 1)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of shifts along rows and along columns."""
        return self.dy_max - self.dy_min + 1, self.dx_max - self.dx_min + 1

    @property
    def dys(self) -> NDArray[np.intp]:
        """Row shifts of the plane's rows."""
        return np.arange(self.dy_min, self.dy_max + 1)

    @property
    def dxs(self) -> NDArray[np.intp]:
        """Column shifts of the plane's columns."""
        return np.arange(self.dx_min, self.dx_max + 1)

    def grown(self, margin: int) -> ShiftWindow:
        """Return the window with `margin` more shifts on every side."""
        return ShiftWindow(self.dy_min - margin, self.dy_max + margin, self.dx_min - margin, self.dx_max + margin)

    def overlapping(self, left_shape: tuple[int, int], right_shape: tuple[int, int]) -> ShiftWindow | None:
        """Return the part of the window at which the two matrices overlap; None where there is none."""
        full = ShiftWindow.full(left_shape, right_shape)
        rows = max(self.dy_min, full.dy_min), min(self.dy_max, full.dy_max)
        columns = max(self.dx_min, full.dx_min), min(self.dx_max, full.dx_max)
        if rows[0] > rows[1] or columns[0] > columns[1]:
            return None
        return ShiftWindow(*rows, *columns)

    def inside(self, other: ShiftWindow) -> tuple[slice, slice]:
        """Slices that cut this window out of a plane over `other`, which must contain it."""
        rows = slice(self.dy_min - other.dy_min, self.dy_max - other.dy_min + 1)
        columns = slice(self.dx_min - other.dx_min, self.dx_max - other.dx_min + 1)
        return rows, columns


def as_window(
    max_shift: float | tuple[float, float] | ShiftWindow | None,
    left_shape: tuple[int, int],
    right_shape: tuple[int, int],
) -> ShiftWindow:
    """Window of shifts from what a user may state; None is the full plane.

    Raises
    ------
    ArgumentError
        If a largest shift is negative, not a number, or not one or two values.
    """
    if isinstance(max_shift, ShiftWindow):
        return max_shift
    if max_shift is None:
        return ShiftWindow.full(left_shape, right_shape)
    try:
        given = np.asarray(max_shift)
        if given.dtype.kind not in "iuf":
            raise TypeError("no numbers")
        max_dy, max_dx = given.ravel().tolist() * (2 if given.size == 1 else 1)
    except (TypeError, ValueError):
        raise ArgumentError(f"max_shift is {max_shift!r}: give one number of pixels, or two (rows, columns)") from None
    if not (math.isfinite(max_dy + max_dx) and min(max_dy, max_dx) >= 0):
        raise ArgumentError(f"max_shift is {max_shift!r}: it must be a finite number of pixels, zero or more")
    full = ShiftWindow.full(left_shape, right_shape)
    reach = max(full.dy_max, -full.dy_min), max(full.dx_max, -full.dx_min)
    return ShiftWindow.symmetric(min(math.ceil(max_dy), reach[0]), min(math.ceil(max_dx), reach[1]))
