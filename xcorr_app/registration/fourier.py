"""Frames moved by trigonometric interpolation of the mirrored frame, all frames of a stack at once.

The ``n`` samples of an axis are mirrored at half a pixel beyond their ends (period ``2n``), so nothing wraps around
from the far side and no step arises at the edge. With ``X[k] = sum_j x[j] cos(pi k (j + 1/2) / n)`` (the DCT-II) the
value at position ``p`` is ``X[0] / n + 2 / n sum_{k=1}^{n-1} X[k] cos(pi k (p + 1/2) / n)``. It is computed as a phase
ramp on a real FFT of the mirrored samples; at the one frequency where a ramp would be ambiguous (``k = n``) the
mirrored spectrum is zero. A position outside ``[0, n - 1]`` takes the sample at the end next to it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, fft_namespace
from xcorr_app.registration.interpolation import inside_each, snap_each

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["BYTES_A_PIXEL", "fourier_moved"]

BYTES_A_PIXEL = 10
"""Of scratch memory, in working pixels: the mirrored samples, their spectrum and its inverse, and the frames."""


def fourier_moved(frames: Array, shifts: NDArray[np.float64], dtype: np.dtype[Any], *, fills_outside: bool) -> Array:
    """Frames (T, Y, X) moved by (T, 2) pixels, in the floating-point type `dtype`, neither rounded nor clipped.

    Pixels that are not finite are bridged by the mean of their frame, and become NaN where the nearest input pixel was
    one. With `fills_outside` what lies outside is left undefined, for the caller to fill.
    """
    xp = array_namespace(frames)
    values = frames.astype(dtype)
    marks = None
    if frames.dtype.kind == "f":
        finite = xp.isfinite(values)
        if not bool(finite.all()):
            values, marks = _bridged(values, finite, xp), _nearest(~finite, shifts, xp)
    for axis in (1, 2):
        values = _moved(values, snap_each(shifts[:, axis - 1]), axis, xp, fills_outside=fills_outside)
    if marks is not None:
        values[marks] = xp.nan
    return values


def _moved(values: Array, shifts: NDArray[np.float64], axis: int, xp: ModuleType, *, fills_outside: bool) -> Array:
    if not shifts.any():
        return values
    fft = fft_namespace(values)
    samples = xp.moveaxis(values, axis, -1)
    n = samples.shape[-1]
    mirrored = xp.empty((*samples.shape[:-1], 2 * n), values.dtype)
    mirrored[..., :n] = samples
    mirrored[..., n:] = samples[..., ::-1]
    spectrum = fft.rfft(mirrored, axis=-1, overwrite_x=True)
    # The phase is made in float64: at k = n it reaches pi * shift, too much for single precision.
    phases = xp.asarray(-math.pi / n * shifts)[:, None] * xp.arange(n + 1, dtype=xp.float64)
    spectrum *= xp.exp(1j * phases).astype(spectrum.dtype)[:, None, :]
    moved = fft.irfft(spectrum, n=2 * n, axis=-1, overwrite_x=True)[..., :n]
    first, stop = (xp.asarray(ends)[:, None, None] for ends in inside_each(n, shifts))
    still = shifts == 0
    if not fills_outside:
        places = xp.arange(n)
        moved = xp.where(places < first, samples[..., :1], moved)
        moved = xp.where(places >= stop, samples[..., -1:], moved)
    if still.any():
        moved = xp.where(xp.asarray(still)[:, None, None], samples, moved)
    return xp.moveaxis(moved, -1, axis)


def _bridged(values: Array, finite: Array, xp: ModuleType) -> Array:
    sound = xp.where(finite, values, 0)
    number = xp.maximum(finite.sum(axis=(1, 2), keepdims=True), 1)
    mean = (sound.sum(axis=(1, 2), keepdims=True, dtype=xp.float64) / number).astype(values.dtype)
    return xp.where(finite, values, mean)


def _nearest(marks: Array, shifts: NDArray[np.float64], xp: ModuleType) -> Array:
    """`marks` of the pixel that lies nearest to where each pixel comes from; edge pixels go on for ever."""
    count, height, width = marks.shape
    whole = np.rint(np.clip(shifts, -(2.0**30), 2.0**30)).astype(np.int64)
    rows, columns = (
        xp.asarray(np.clip(np.arange(n) - whole[:, axis, None], 0, n - 1)) for axis, n in ((0, height), (1, width))
    )
    return marks[xp.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]]
