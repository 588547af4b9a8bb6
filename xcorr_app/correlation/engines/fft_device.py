"""The correlation theorem on a device: whole two-dimensional transforms, and nothing between them but one product.

On a CPU it pays to leave out rows of the inverse; on a device the strided passes that takes cost more than they save.
The scale of the inverse goes into the product, and the window is copied out of the padded plane in at most four pieces.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.direct.fft_size import fast_length, smallest_size
from xcorr_app.gpu.runtime.arrays import Array

_Piece = tuple[slice, slice]


class DeviceFFTCorrelator:
    """Correlation theorem for CuPy arrays at a fixed transform size."""

    def __init__(self, left_shape: tuple[int, int], right_shape: tuple[int, int], window: ShiftWindow) -> None:
        self._fft = importlib.import_module("cupyx.scipy.fft")
        self._cupy = importlib.import_module("cupy")
        self._window = window
        rows = smallest_size(left_shape[0], right_shape[0], window.dy_min, window.dy_max)
        columns = smallest_size(left_shape[1], right_shape[1], window.dx_min, window.dx_max)
        self._size = fast_length(rows), fast_length(columns)
        self._rows = _pieces(window.dy_min, window.dy_max, self._size[0])
        self._columns = _pieces(window.dx_min, window.dx_max, self._size[1])

    def left(self, matrices: Array) -> Array:
        """Transform left matrices ``(..., H, W)``."""
        return self._spectrum(matrices)

    def right(self, matrices: Array) -> Array:
        """Transform right matrices ``(..., H', W')``."""
        return self._spectrum(matrices)

    def sums(self, left: Array, right: Array) -> Array:
        """Multiply the spectra and transform back, shape ``(N, M, ny, nx)``."""
        spectrum = _product()(left, right, 1 / (self._size[0] * self._size[1]))
        padded = self._fft.irfft2(spectrum, s=self._size, norm="forward", overwrite_x=True)
        planes = self._cupy.empty((*padded.shape[:-2], *self._window.shape), padded.dtype)
        for to_rows, from_rows in self._rows:
            for to_columns, from_columns in self._columns:
                planes[..., to_rows, to_columns] = padded[..., from_rows, from_columns]
        return planes

    def _spectrum(self, matrices: Array) -> Array:
        height, width = matrices.shape[-2:]
        padded = self._cupy.empty((*matrices.shape[:-2], *self._size), matrices.dtype)
        padded[..., :height, :width] = matrices
        padded[..., height:, :] = 0
        padded[..., :height, width:] = 0
        return self._fft.rfft2(padded)


def _pieces(first: int, last: int, size: int) -> list[_Piece]:
    """Slices (of the window, of the padded plane) that hold shifts below zero and the others."""
    pieces = []
    for start, stop in ((first, min(last, -1) + 1), (max(first, 0), last + 1)):
        if stop > start:
            at = start % size
            pieces.append((slice(start - first, stop - first), slice(at, at + stop - start)))
    return pieces


@functools.cache
def _product() -> Any:
    """Kernel for the product of a spectrum with the conjugate of another, scaled; it broadcasts."""
    cupy = importlib.import_module("cupy")
    return cupy.ElementwiseKernel(
        "T left, T right, float64 scale", "T out", "out = left * conj(right) * T(scale)", "xcorr_product"
    )
