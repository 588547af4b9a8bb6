"""The reference: ``scipy.ndimage`` in float64, with its own boundary handling.

Where taps fold a frame more than once, SciPy's n-dimensional ``reflect`` reads the wrong pixel at each multiple of
twice the frame's length (SciPy 1.17; its one-dimensional filters do not). Frames smaller than the taps are therefore
padded here first.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy  # whose parts are loaded when they are asked for

from xcorr_app.filtering.engines.task import Task
from xcorr_app.filtering.taps import Kernel


def run(task: Task) -> npt.NDArray[np.float64]:
    """Correlate a frame with dense taps, or with terms where the taps are too large to be multiplied out."""
    kernel = task.kernel
    frame = task.frame.astype(np.float64)
    if kernel.dense is None:
        sums = np.sum([_term(task, frame, column, row) for column, row in kernel.terms], axis=0)
        return _inner(sums, kernel) if task.mode == "valid" else np.asarray(sums)
    if task.mode != "valid" and all(size >= taps for size, taps in zip(frame.shape, kernel.shape, strict=True)):
        return np.asarray(
            scipy.ndimage.correlate(frame, kernel.dense, mode=task.mode, cval=task.cval, origin=_origins(kernel))
        )
    whole = scipy.ndimage.correlate(task.padded(np.float64), kernel.dense, mode="constant", origin=_origins(kernel))
    return _inner(whole, kernel)


def _inner(sums: npt.NDArray[np.float64], kernel: Kernel) -> npt.NDArray[np.float64]:
    (top, bottom), (left, right) = kernel.margins
    return sums[top : sums.shape[0] - bottom, left : sums.shape[1] - right]


def _origins(kernel: Kernel) -> tuple[int, int]:
    rows, columns = (centre - size // 2 for centre, size in zip(kernel.centre, kernel.shape, strict=True))
    return rows, columns


def _term(
    task: Task, frame: npt.NDArray[np.float64], column: npt.NDArray[np.float64], row: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    mode = "constant" if task.mode == "valid" else task.mode
    down, across = _origins(task.kernel)
    sums = scipy.ndimage.correlate1d(frame, column, axis=0, mode=mode, cval=task.cval, origin=down)
    outside = task.cval * float(column.sum())
    return np.asarray(scipy.ndimage.correlate1d(sums, row, axis=1, mode=mode, cval=outside, origin=across))
