"""Which engine computes a frame: the fastest that is exact enough.

Products a pixel decide. Separable passes win from 5 x 5 on at rank 1 and from 8 x 8 on at rank 2; other taps go to
OpenCV, which changes to block-wise spectra by itself, and beyond 63 x 63 to one transform of the whole frame. A frame
with NaN or infinity never meets a transform.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.filtering.engines import fourier, opencv, separable
from xcorr_app.filtering.engines.task import Task
from xcorr_app.filtering.taps import DENSE_LIMIT, Kernel

ENGINES: dict[str, Callable[[Task], npt.NDArray[np.floating[Any]]]] = {
    "opencv": opencv.run,
    "separable": separable.run,
    "fft": fourier.run,
}


def chosen_engine(kernel: Kernel, *, finite: bool) -> str:
    """Say which engine these taps are for."""
    height, width = kernel.shape
    if kernel.dense is None or (kernel.terms and 2 * len(kernel.terms) * (height + width) <= height * width):
        return "separable"
    return "fft" if finite and height * width > DENSE_LIMIT else "opencv"


def run_engine(task: Task) -> npt.NDArray[np.floating[Any]]:
    """Correlate the frame of a task with its kernel."""
    return ENGINES[chosen_engine(task.kernel, finite=task.finite)](task)
