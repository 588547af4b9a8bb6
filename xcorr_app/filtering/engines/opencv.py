"""Dense taps through OpenCV's ``filter2D``, on a padded frame.

OpenCV lacks ``wrap``, a constant other than zero and origins outside its own conventions, so the frame comes
padded and only outputs that need nothing from outside are kept: every mode is then the same work.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from xcorr_app.errors import ArgumentError
from xcorr_app.filtering.engines.task import Task

DIRECT_AREA = 49
"""``filter2D`` adds up so many taps one by one; from 50 on in float64 it multiplies spectra, which spreads a NaN."""


def run(task: Task) -> npt.NDArray[np.floating[Any]]:
    """Correlate a frame with dense taps."""
    taps = task.kernel.dense
    if taps is None:
        raise ArgumentError(f"taps of {task.kernel.shape} are too many for engine 'opencv': use 'auto' or 'separable'")
    work = task.working_type(taps.size)
    frame = task.padded(work)
    if task.finite or taps.size <= DIRECT_AREA:
        return _correlated(frame, taps.astype(work))
    return _in_pieces(frame, taps)


def _correlated(frame: npt.NDArray[Any], taps: npt.NDArray[Any]) -> npt.NDArray[Any]:
    whole = np.asarray(cv2.filter2D(frame, -1, taps, borderType=cv2.BORDER_CONSTANT))
    top, left = taps.shape[0] // 2, taps.shape[1] // 2
    height, width = frame.shape[0] - taps.shape[0] + 1, frame.shape[1] - taps.shape[1] + 1
    return whole[top : top + height, left : left + width]


def _in_pieces(frame: npt.NDArray[Any], taps: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Add the contributions of pieces of the taps, each small enough to be summed directly."""
    height, width = frame.shape[0] - taps.shape[0] + 1, frame.shape[1] - taps.shape[1] + 1
    sums = np.zeros((height, width), frame.dtype)
    with np.errstate(invalid="ignore"):
        for v in range(0, taps.shape[1], DIRECT_AREA):
            across = taps[:, v : v + DIRECT_AREA]
            step = max(1, DIRECT_AREA // across.shape[1])
            for u in range(0, taps.shape[0], step):
                piece = across[u : u + step]
                window = frame[u : u + height + piece.shape[0] - 1, v : v + width + piece.shape[1] - 1]
                sums += _correlated(np.ascontiguousarray(window), np.ascontiguousarray(piece))
    return sums
