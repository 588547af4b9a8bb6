"""Engine ``fft``: correlation theorem with real FFTs over batches; device arrays go to `fft_device`.

Two savings over a plain ``irfft2(rfft2(left) * conj(rfft2(right)))``: the padding is only as large as the *window*
needs to be free of wrap-around (not the full plane), and of the inverse only the window's rows are transformed
along the second axis. The precision follows the matrices: float32 in, single-precision transforms.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from xcorr_app.correlation.engines.base import Correlator, Engine
from xcorr_app.correlation.engines.fft_blocks import BlockFFTCorrelator, plan
from xcorr_app.correlation.engines.fft_device import DeviceFFTCorrelator
from xcorr_app.correlation.engines.fft_whole import WholeFFTCorrelator
from xcorr_app.correlation.engines.overlapping import over_overlaps
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.direct.fft_size import smallest_size
from xcorr_app.gpu.runtime.arrays import Array, array_namespace


def _bound(left_shape: tuple[int, int], right_shape: tuple[int, int], window: ShiftWindow, xp: Any) -> Correlator:
    make = HostFFTCorrelator if xp is np else DeviceFFTCorrelator
    return over_overlaps(lambda computed: make(left_shape, right_shape, computed), left_shape, right_shape, window, xp)


FFT = Engine("fft", _bound)


class HostFFTCorrelator:
    """The transforms that take least time on the host, which depends on the precision of the matrices."""

    def __init__(self, left_shape: tuple[int, int], right_shape: tuple[int, int], window: ShiftWindow) -> None:
        self._problem = left_shape, right_shape, window
        self._made: dict[int, Correlator] = {}

    def left(self, matrices: Array) -> Array:
        """Prepare left matrices for `sums` of right ones of the same type."""
        return self.of(matrices.dtype).left(matrices)

    def right(self, matrices: Array) -> Array:
        """Prepare right matrices."""
        return self.of(matrices.dtype).right(matrices)

    def sums(self, left: Array, right: Array) -> Array:
        """Multiply and transform back, shape ``(N, M, ny, nx)``."""
        # Spectra of SciPy are complex: of the type of its real part.
        return self.of(right.real.dtype).sums(left, right)

    def of(self, dtype: np.dtype[Any]) -> Correlator:
        """Return the correlator of matrices of this type."""
        itemsize = dtype.itemsize
        if itemsize not in self._made:
            axes = plan(*self._problem, itemsize)
            if axes is None:
                self._made[itemsize] = FFTCorrelator(*self._problem, np)
            else:
                correlator = BlockFFTCorrelator if len(axes[0].right) > 1 else WholeFFTCorrelator
                self._made[itemsize] = correlator(self._problem[2], axes)
        return self._made[itemsize]


class FFTCorrelator:
    """Correlation theorem at a fixed transform size."""

    def __init__(
        self,
        left_shape: tuple[int, int],
        right_shape: tuple[int, int],
        window: ShiftWindow,
        xp: Any,
        *,
        whiten: bool = False,
    ) -> None:
        self._fft = importlib.import_module("scipy.fft" if xp.__name__ == "numpy" else "cupyx.scipy.fft")
        self._xp = xp
        self._whiten = whiten
        lowest, highest = (window.dy_min, window.dx_min), (window.dy_max, window.dx_max)
        needed = [smallest_size(*sizes) for sizes in zip(left_shape, right_shape, lowest, highest, strict=True)]
        self._size = tuple(self._fft.next_fast_len(n, real=True) for n in needed)
        self._rows = xp.asarray(window.dys % self._size[0])
        self._columns = xp.asarray(window.dxs % self._size[1])

    def left(self, matrices: Array) -> Array:
        """Transform left matrices ``(..., H, W)``."""
        return self._spectrum(matrices)

    def right(self, matrices: Array) -> Array:
        """Transform right matrices ``(..., H', W')`` and conjugate the result."""
        spectrum = self._spectrum(matrices)
        return array_namespace(spectrum).conjugate(spectrum, out=spectrum)

    def sums(self, left: Array, right: Array) -> Array:
        """Multiply the spectra and transform back, shape ``(N, M, ny, nx)``."""
        spectrum = left * right
        if self._whiten:
            # Where both spectra vanish (outside the band) there is no phase: such terms are left out.
            modulus = abs(spectrum)
            spectrum /= modulus + (modulus.max(axis=(-2, -1), keepdims=True) * 1e-6 + 1e-37)
        columns = self._fft.ifft(spectrum, axis=-2, overwrite_x=True)
        rows = columns[..., self._rows, :]
        return self._fft.irfft(rows, n=self._size[1], axis=-1)[..., self._columns]

    def _spectrum(self, matrices: Array) -> Array:
        half = self._fft.rfft(matrices, n=self._size[1], axis=-1)
        rows = matrices.shape[-2]
        padded = self._xp.empty((*half.shape[:-2], self._size[0], half.shape[-1]), dtype=half.dtype)
        padded[..., :rows, :] = half
        padded[..., rows:, :] = 0
        return self._fft.fft(padded, axis=-2, overwrite_x=True)
