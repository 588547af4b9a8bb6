"""Large dense taps by the fast Fourier transform, in float64.

The frame is padded by its boundary mode first, so the transform's own wrapping never reaches an output. Errors
are about 1e-15 of the largest sum in the frame. One NaN would spread over the whole frame: finite frames only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy  # whose parts are loaded when they are asked for

from xcorr_app.filtering.engines.task import Task
from xcorr_app.filtering.taps import multiplied_out
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, fft_namespace


def run(task: Task) -> Array:
    """Correlate a finite frame with taps."""
    kernel = task.kernel
    taps = multiplied_out(kernel.terms) if kernel.dense is None else kernel.dense
    return correlated_along(task.padded(np.float64), taps, (0, 1))


def correlated_along(frame: Array, taps: npt.NDArray[Any], axes: tuple[int, ...]) -> Array:
    """Correlate along axes, keeping the outputs that need nothing from outside.

    Examples
    --------
    >>> correlated_along(np.array([[1.0, 2.0, 4.0]]), np.array([[1.0, 3.0]]), (1,)).round(9)
    array([[ 7., 14.]])
    """
    fft = fft_namespace(frame)
    lengths = [scipy.fft.next_fast_len(frame.shape[axis], real=True) for axis in axes]
    spectrum = fft.rfftn(frame, lengths, axes=axes)
    spectrum *= fft.rfftn(array_namespace(frame).asarray(taps), lengths, axes=axes).conj()
    height, width = frame.shape[0] - taps.shape[0] + 1, frame.shape[1] - taps.shape[1] + 1
    return fft.irfftn(spectrum, lengths, axes=axes)[:height, :width]
