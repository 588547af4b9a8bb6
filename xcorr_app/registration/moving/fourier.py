"""A frame moved by trigonometric interpolation of the mirrored frame, on the CPU; what is not finite, anywhere.

The ``n`` samples of an axis are mirrored at half a pixel beyond their ends (period ``2n``), so nothing wraps around
from the far side and no step arises at the edge. With ``X[k] = sum_j x[j] cos(pi k (j + 1/2) / n)`` (the DCT-II) the
value at position ``p`` is ``X[0] / n + 2 / n sum_{k=1}^{n-1} X[k] cos(pi k (p + 1/2) / n)``. Here it is computed as a
phase ramp on a real FFT of the mirrored samples; at the one frequency where a ramp would be ambiguous (``k = n``) the
mirrored spectrum is zero. On a device ``kernels/resample/fourier.cuh`` says how. A position outside ``[0, n - 1]``
takes the sample at the end next to it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy  # whose parts are loaded when they are asked for
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.moving.interpolation import AxisMove


def fourier_moved(frame: NDArray[Any], rows: AxisMove, columns: AxisMove, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A frame (Y, X) moved, in the floating-point type `dtype`, neither rounded nor clipped.

    Pixels that are not finite are bridged by the mean of the others, and become NaN where the nearest input pixel was
    one.
    """
    values = frame.astype(dtype)
    finite = np.isfinite(values)
    if finite.all():
        return _moved(_moved(values, rows, 0), columns, 1)
    moved = _moved(_moved(bridged(values[None], finite[None])[0], rows, 0), columns, 1)
    moved[nearest_marks(~finite[None], np.array([[rows.shift, columns.shift]]))[0]] = np.nan
    return moved


def _moved(values: NDArray[Any], move: AxisMove, axis: int) -> NDArray[Any]:
    if move.shift == 0.0:
        return values
    n = values.shape[axis]
    spectrum = scipy.fft.rfft(np.concatenate([values, np.flip(values, axis)], axis=axis), axis=axis)
    # The phase is made in float64: at k = n it reaches pi * shift, too much for single precision.
    ramp = np.exp(-1j * math.pi * move.shift / n * np.arange(n + 1)).astype(spectrum.dtype)
    spectrum *= ramp[:, None] if axis == 0 else ramp[None, :]
    moved = np.swapaxes(scipy.fft.irfft(spectrum, n=2 * n, axis=axis), 0, axis)[:n]
    samples = np.swapaxes(values, 0, axis)
    beyond_start, beyond_end = (move.first, move.stop) if move.stop > 0 else (n, n) if move.shift > 0 else (0, 0)
    moved[:beyond_start] = samples[0]
    moved[beyond_end:] = samples[n - 1]
    return np.swapaxes(moved, 0, axis)


def bridged(frames: Array, finite: Array) -> Array:
    """Frames (T, Y, X) with the mean of each one's finite pixels, or zero, in place of the others."""
    xp = array_namespace(frames)
    sound = xp.where(finite, frames, 0)
    number = xp.maximum(finite.sum(axis=(1, 2), keepdims=True), 1)
    mean = (sound.sum(axis=(1, 2), keepdims=True, dtype=xp.float64) / number).astype(frames.dtype)
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
