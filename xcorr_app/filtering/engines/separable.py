"""Taps of low rank as a column pass and a row pass for each of their terms.

OpenCV makes both passes at once where it has the boundary mode. Else a pass pads along its own axis only, so a Gaussian
of 250 px does not make a small frame a hundred times larger. Under ``constant`` the row pass meets an outside that the
column pass has already turned into ``cval`` times the sum of the column: the result is that of the dense taps.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from xcorr_app.filtering.boundary import padded
from xcorr_app.filtering.engines.fourier import correlated_along
from xcorr_app.filtering.engines.opencv import as_read, own_border
from xcorr_app.filtering.engines.task import Task
from xcorr_app.filtering.taps import Matrix

FOURIER_LENGTH = 192
"""Passes with more taps multiply spectra, where the frame is finite."""


def run(task: Task) -> npt.NDArray[np.floating[Any]]:
    """Correlate a frame with every term and add the results."""
    terms = task.kernel.terms
    # The second pass averages the errors of the first: the longer one decides. Terms can cancel, and the error of
    # float32 is that of the terms: more than one run in float64.
    work = task.working_type(max(task.kernel.shape)) if len(terms) == 1 else np.float64
    with np.errstate(invalid="ignore"):
        sums = _term(task, *terms[0], work)
        for column, row in terms[1:]:
            sums = sums + _term(task, column, row, work)
    return sums


def _term(task: Task, column: Matrix, row: Matrix, work: type[np.float32 | np.float64]) -> npt.NDArray[Any]:
    border = own_border(task)
    if border is not None and (not task.finite or max(task.kernel.shape) <= FOURIER_LENGTH):
        frame, depth = as_read(task.frame, work)
        taps: Any = (row.astype(work), column.astype(work))
        return np.asarray(cv2.sepFilter2D(frame, depth, taps[0], taps[1], borderType=border))
    rows, columns = task.kernel.margins
    tall = padded(task.frame, rows, (0, 0), task.mode, task.cval, work)
    down = _pass(tall, column[:, None], finite=task.finite)
    wide = padded(down, (0, 0), columns, task.mode, task.cval * float(column.sum()), work)
    return _pass(wide, row[None, :], finite=task.finite)


def _pass(frame: npt.NDArray[Any], taps: npt.NDArray[Any], *, finite: bool) -> npt.NDArray[Any]:
    axis = int(taps.shape[1] > 1)
    if finite and taps.size > FOURIER_LENGTH:
        return np.asarray(correlated_along(frame.astype(np.float64, copy=False), taps, (axis,)))
    line, here = taps.ravel().astype(frame.dtype), np.ones(1, frame.dtype)
    across, down = (line, here) if axis else (here, line)
    whole = np.asarray(cv2.sepFilter2D(frame, -1, across, down, borderType=cv2.BORDER_CONSTANT))
    start, length = taps.size // 2, frame.shape[axis] - taps.size + 1
    return whole[:, start : start + length] if axis else whole[start : start + length]
