"""The correlation theorem by OpenCV's real transforms, one right matrix after the other: on the host, of middling size.

The left matrix is placed so that the window is at the beginning of the plane.
Spectra are packed as OpenCV does (CCS), which is half of a complex one; each right matrix goes through the same
memory, so that nothing but planes and the left's spectra is ever allocated.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.engines.base import AsTheyAre
from xcorr_app.correlation.engines.fft_blocks import Cut
from xcorr_app.correlation.engines.thread_memory import thread_memory
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.runtime.arrays import Array


class WholeFFTCorrelator(AsTheyAre):
    """Correlation theorem over axes that :func:`xcorr_app.correlation.engines.fft_blocks.plan` left in one piece.

    Right matrices are transformed when they are multiplied, as long as they are cached.
    """

    def __init__(self, window: ShiftWindow, axes: tuple[Cut, Cut]) -> None:
        self._plane = window.shape
        self._size = axes[0].size, axes[1].size
        (to_rows, of_rows), (to_columns, of_columns) = (axis.left[0] for axis in axes)
        self._to, self._of = (to_rows, to_columns), (of_rows, of_columns)

    def left(self, matrices: NDArray[np.floating]) -> Array:
        """Transform left matrices ``(..., H, W)``, scaled for the inverse."""
        batch = matrices.shape[:-2]
        spectra = np.empty((*batch, *self._size), matrices.dtype)
        values = np.zeros(self._size, matrices.dtype)
        for index in np.ndindex(batch):
            values[self._to] = matrices[index][self._of]
            cv2.dft(values, spectra[index], cv2.DFT_SCALE)
        return spectra

    def sums(self, left: Array, right: Array) -> NDArray[np.floating]:
        """Multiply the spectra and transform back, shape ``(N, M, ny, nx)``."""
        batch = np.broadcast_shapes(left.shape[:2], right.shape[:2])
        planes = np.empty((*batch, *self._plane), right.dtype)
        rows, columns = right.shape[-2:]
        # In single precision OpenCV transforms all rows at once in less time than a part of them; 0 is all.
        known, wanted = (0, 0) if right.dtype == np.float32 else (rows, self._plane[0])
        values, spectrum, product, inverse = thread_memory(4, self._size, right.dtype)
        values[rows:] = 0
        values[:rows, columns:] = 0
        for n, m in np.ndindex(right.shape[:2]):
            values[:rows, :columns] = right[n, m]
            cv2.dft(values, spectrum, nonzeroRows=known)
            for i in range(batch[0]) if right.shape[0] == 1 else (n,):
                of_left = left[min(i, left.shape[0] - 1), min(m, left.shape[1] - 1)]
                cv2.mulSpectrums(of_left, spectrum, 0, product, conjB=True)
                cv2.dft(product, inverse, cv2.DFT_INVERSE | cv2.DFT_REAL_OUTPUT, nonzeroRows=wanted)
                planes[i, m] = inverse[: self._plane[0], : self._plane[1]]
        return planes
