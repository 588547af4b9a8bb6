"""Interpolation along one axis: the taps of each method, and which positions are inside a frame.

Moving a frame by ``shift`` samples it at ``position = index - shift``. The position is split into a whole
number, which only copies, and a fraction in [0, 1), for which a few weights (taps) are needed. A translation
is separable, so two dimensions are one set of taps an axis.

========== ==== ==========================================================================================
order      taps weights for the fraction ``t`` (offset from the pixel at or before the position)
========== ==== ==========================================================================================
0          1    nearest: the *shift* is rounded to whole pixels first, half to even
1          2    linear: ``1 - t, t``
3          4    cubic convolution, a = -1/2: Keys, IEEE Trans. ASSP 1981, doi:10.1109/TASSP.1981.1163711
"lanczos"  8    ``sinc(u) sinc(u / 4)`` for |u| < 4, divided by their sum so that a constant stays constant
"fourier"  all  no taps: a phase ramp on the mirrored frame, see `fourier_moved`
========== ==== ==========================================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ArgumentError

Order: TypeAlias = Literal[0, 1, 3, "lanczos", "fourier"]
OrderName: TypeAlias = Literal["nearest", "linear", "cubic", "lanczos", "fourier"]
"""As the commands call them."""
ORDERS: tuple[Order, ...] = (0, 1, 3, "lanczos", "fourier")
METHODS = {0: "nearest", 1: "linear", 3: "cubic", "lanczos": "lanczos"}
"""What the kernels and their table call the orders that have taps."""
LANCZOS_RADIUS = 4
"""Pixels that the weights reach to each side."""

EDGE_TOLERANCE = 1e-3
"""Pixels beyond an edge that still count as inside."""
WHOLE_PIXEL_TOLERANCE = 1e-9
"""A shift this close to a whole number (pixels) is that whole number: rounding noise in a shift must neither
cost a border row nor turn a copy into arithmetic."""


@dataclass(frozen=True)
class AxisMove:
    """A move along one axis: output index ``i`` samples position ``i - shift`` of the input.

    Attributes
    ----------
    shift : float
        The move in pixels, snapped to a whole number where it is within `WHOLE_PIXEL_TOLERANCE` of one.
    start : int
        Input index under the first tap for output index 0 (may be outside the frame).
    weights : tuple of float
        One weight a tap; ``(1.0,)`` for a whole-pixel move. They sum to 1.
    first, stop : int
        Output indices ``first <= i < stop`` whose position is inside the frame, that is in ``[0, length -
        1]``.
    """

    shift: float
    start: int
    weights: tuple[float, ...]
    first: int
    stop: int

    @property
    def is_whole(self) -> bool:
        """Whether the shift is a whole number of pixels, so that samples are copies."""
        return self.shift == math.floor(self.shift)


def order_of(order: Order | OrderName) -> Order:
    """Return an order that is given by number or by name; `check_order` tells whether it is one."""
    named: dict[object, Order] = {"nearest": 0, "linear": 1, "cubic": 3}
    return named.get(order, order) if isinstance(order, str) else order  # type: ignore[arg-type]


def check_order(order: object) -> None:
    """Raise `ArgumentError` unless ``order`` is one of `ORDERS`."""
    if isinstance(order, bool) or order not in ORDERS:
        raise ArgumentError(f"interpolation={order!r} is unknown: choose one of {', '.join(get_args(OrderName))}")


def snap_each(shifts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shifts (pixels), or the whole numbers they are within `WHOLE_PIXEL_TOLERANCE` of."""
    whole = np.rint(shifts)
    return np.asarray(np.where(np.abs(shifts - whole) <= WHOLE_PIXEL_TOLERANCE, whole, shifts))


def inside_each(length: int, shifts: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """First and one-past-last index, as whole numbers, whose position is in ``[0, length - 1]``, of every shift.

    ``first >= stop`` where there is none. A position up to `EDGE_TOLERANCE` beyond an edge counts as inside and reads
    the edge pixel: a shift that is nothing but the noise of a measurement must not blank a row.
    """
    shifts = snap_each(shifts)
    first = np.maximum(np.ceil(shifts - EDGE_TOLERANCE), 0.0)
    stop = np.minimum(np.floor(length - 1 + shifts + EDGE_TOLERANCE) + 1, float(length))
    return first, stop


def plan_axis(length: int, shift: float, order: Order) -> AxisMove:
    """Split a move by ``shift`` pixels of an axis of ``length`` pixels into start, taps and inside range.

    A shift so large that every tap falls beyond the frame is shortened to the nearest one that still does:
    the samples are the same and the indices stay small.
    """
    reach = length + 2 * LANCZOS_RADIUS
    shift = float(snap_each(np.clip(shift, -reach, reach)))
    if order == 0:
        shift = float(round(shift))
    start = math.floor(-shift)
    fraction = -shift - start
    first, stop = (int(end) for end in inside_each(length, np.asarray(shift)))
    stop = max(first, stop)
    if fraction == 0.0 or order == "fourier":
        return AxisMove(shift, start, (1.0,), first, stop)
    offset, weights = fraction_taps(order, fraction)
    return AxisMove(shift, start + offset, weights, first, stop)


def fraction_taps(order: Order, fraction: float) -> tuple[int, tuple[float, ...]]:
    """Offset of the first tap and the weights for ``0 < fraction < 1`` of a pixel; see the module's table."""
    t = fraction
    if order == 1:
        return 0, (1.0 - t, t)
    if order == 3:
        return -1, (
            ((-0.5 * t + 1.0) * t - 0.5) * t,
            (1.5 * t - 2.5) * t * t + 1.0,
            ((-1.5 * t + 2.0) * t + 0.5) * t,
            (0.5 * t - 0.5) * t * t,
        )
    distance = t - np.arange(1 - LANCZOS_RADIUS, LANCZOS_RADIUS + 1)
    weights = np.sinc(distance) * np.sinc(distance / LANCZOS_RADIUS)
    return 1 - LANCZOS_RADIUS, tuple(float(w) for w in weights / weights.sum())
