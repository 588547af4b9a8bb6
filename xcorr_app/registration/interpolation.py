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
"fourier"  all  no taps: a phase ramp on the mirrored frame, see `fourier_move`
========== ==== ==========================================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, fft_namespace

Order: TypeAlias = Literal[0, 1, 3, "lanczos", "fourier"]
ORDERS: tuple[Order, ...] = (0, 1, 3, "lanczos", "fourier")
LANCZOS_RADIUS = 4

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


def check_order(order: object) -> None:
    """Raise `ArgumentError` unless ``order`` is one of `ORDERS`."""
    if isinstance(order, bool) or order not in ORDERS:
        raise ArgumentError(f"order={order!r} is unknown: choose one of {', '.join(map(repr, ORDERS))}")


def snap(shift: float) -> float:
    """``shift`` (pixels), or the whole number it is within `WHOLE_PIXEL_TOLERANCE` of."""
    whole = float(np.rint(shift))
    return whole if abs(shift - whole) <= WHOLE_PIXEL_TOLERANCE else float(shift)


def inside(length: int, shift: float) -> tuple[int, int]:
    """First and one-past-last index whose position is in ``[0, length - 1]``; (0, 0) where there is none.

    A position up to `EDGE_TOLERANCE` beyond an edge counts as inside and reads the edge pixel: a shift that is
    nothing but the noise of a measurement must not blank a row.
    """
    shift = snap(shift)
    first = max(0.0, math.ceil(shift - EDGE_TOLERANCE))
    stop = min(float(length), math.floor(length - 1 + shift + EDGE_TOLERANCE) + 1)
    return (int(first), int(stop)) if first < stop else (0, 0)


def plan_axis(length: int, shift: float, order: Order) -> AxisMove:
    """Split a move by ``shift`` pixels of an axis of ``length`` pixels into start, taps and inside range.

    A shift so large that every tap falls beyond the frame is shortened to the nearest one that still does:
    the samples are the same and the indices stay small.
    """
    reach = length + 2 * LANCZOS_RADIUS
    shift = snap(min(max(shift, -reach), reach))
    if order == 0:
        shift = float(np.rint(shift))
    start = math.floor(-shift)
    fraction = -shift - start
    first, stop = inside(length, shift)
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
    if order == "lanczos":
        distance = t - np.arange(1 - LANCZOS_RADIUS, LANCZOS_RADIUS + 1)
        weights = np.sinc(distance) * np.sinc(distance / LANCZOS_RADIUS)
        return 1 - LANCZOS_RADIUS, tuple(float(w) for w in weights / weights.sum())
    raise ArgumentError(f"order={order!r} has no taps")


def fourier_move(values: Array, move: AxisMove, axis: int) -> Array:
    """Move ``values`` along ``axis`` by trigonometric interpolation of the mirrored samples.

    The ``n`` samples are mirrored at half a pixel beyond their ends (period ``2n``), so nothing wraps around
    from the far side and no step arises at the edge. With ``X[k] = sum_j x[j] cos(pi k (j + 1/2) / n)`` (the
    DCT-II) the value at position ``p`` is ``X[0] / n + 2 / n sum_{k=1}^{n-1} X[k] cos(pi k (p + 1/2) / n)``.
    It is computed as a phase ramp on a real FFT of the mirrored samples; at the one frequency where a ramp
    would be ambiguous (``k = n``) the mirrored spectrum is zero. A position outside ``[0, n - 1]`` takes the
    sample at the end next to it.
    """
    if move.shift == 0.0:
        return values
    xp, fft = array_namespace(values), fft_namespace(values)
    n = values.shape[axis]
    spectrum = fft.rfft(xp.concatenate([values, xp.flip(values, axis)], axis=axis), axis=axis)
    # The phase is made in float64: at k = n it reaches pi * shift, too much for single precision.
    ramp = xp.exp(-1j * math.pi * move.shift / n * xp.arange(n + 1, dtype=xp.float64)).astype(spectrum.dtype)
    spectrum *= ramp[:, None] if axis == 0 else ramp[None, :]
    moved = xp.swapaxes(fft.irfft(spectrum, n=2 * n, axis=axis), 0, axis)[:n]
    samples = xp.swapaxes(values, 0, axis)
    beyond_start, beyond_end = (move.first, move.stop) if move.stop > 0 else (n, n) if move.shift > 0 else (0, 0)
    moved[:beyond_start] = samples[0]
    moved[beyond_end:] = samples[n - 1]
    return xp.swapaxes(moved, 0, axis)
