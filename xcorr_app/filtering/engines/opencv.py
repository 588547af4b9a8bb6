"""Dense taps through OpenCV's ``filter2D``.

Where OpenCV has the boundary mode itself, it reads the frame as it is. It lacks ``wrap``, a constant other than zero
and origins outside its own conventions: there the frame comes padded, and only outputs that need nothing from outside
are kept.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import scipy  # whose parts are loaded when they are asked for

from xcorr_app.filtering.engines.task import Task

DIRECT_AREA = 49
"""``filter2D`` adds up so many taps one by one; from 50 on in float64 it multiplies spectra, which spreads a NaN:
there SciPy adds up."""


_BORDERS = {
    "reflect": cv2.BORDER_REFLECT,
    "mirror": cv2.BORDER_REFLECT_101,
    "nearest": cv2.BORDER_REPLICATE,
    "constant": cv2.BORDER_CONSTANT,
}
_READ = ("uint8", "uint16", "int16")
"""Types of pixels that OpenCV sums as they are, in either type of floating point."""


def own_border(task: Task) -> int | None:
    """OpenCV's number for the boundary of a task; None where the frame has to be padded first.

    Taps are of odd length about their middle, and reach less than once across the frame.
    """
    if task.mode == "constant" and task.cval:
        return None
    margins = zip(task.kernel.margins, task.kernel.shape, task.frame.shape, strict=True)
    if any(before != after or 2 * before + 1 != taps or taps > length for (before, after), taps, length in margins):
        return None
    return _BORDERS.get(task.mode)


def as_read(frame: npt.NDArray[Any], work: type[np.float32 | np.float64]) -> tuple[npt.NDArray[Any], int]:
    """Hand OpenCV a frame in a type that it reads, and its number for the type of the sums."""
    depth = cv2.CV_32F if work is np.float32 else cv2.CV_64F
    pixels = frame if frame.dtype in _READ else frame.astype(work, copy=False)
    # OpenCV refuses lines that begin between two pixels, as those of a field of records may.
    return np.require(pixels, requirements=("C", "A")), depth


def run(task: Task) -> npt.NDArray[np.floating[Any]]:
    """Correlate a frame with dense taps."""
    taps = task.kernel.dense
    assert taps is not None, "so many are terms alone"  # noqa: S101 - a mistake of ours, not of the user
    work = task.working_type(taps.size)
    border = own_border(task)
    if border is not None and (task.finite or taps.size <= DIRECT_AREA):
        frame, depth = as_read(task.frame, work)
        return np.asarray(cv2.filter2D(frame, depth, taps.astype(work), borderType=border))
    frame = task.padded(work)
    if task.finite or taps.size <= DIRECT_AREA:
        whole: npt.NDArray[Any] = np.asarray(cv2.filter2D(frame, -1, taps.astype(work), borderType=cv2.BORDER_CONSTANT))
    else:
        whole = scipy.ndimage.correlate(frame, taps, mode="constant")
    top, left = taps.shape[0] // 2, taps.shape[1] // 2
    height, width = frame.shape[0] - taps.shape[0] + 1, frame.shape[1] - taps.shape[1] + 1
    return whole[top : top + height, left : left + width]
