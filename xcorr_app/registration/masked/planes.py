"""Zero-mean normalised correlation of images of which only some pixels count, over a window of shifts.

At a shift only those pixels take part that count in both images; their number, sums and sums of squares are themselves
correlations with the masks, so that six products of spectra give the plane (Padfield 2012, doi
10.1109/TIP.2011.2181402). A plane element is NaN where too few pixels overlap.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.direct.fft_size import smallest_size
from xcorr_app.gpu.runtime.arrays import Array, array_namespace

_VARIANCE = 1e-9
"""Of an overlap, over that of the image: below, it is rounding."""


_FEWEST = 4
"""Smallest overlap in pixels."""
_CORRELATED = 24
"""Pixels around each within which an image may resemble itself."""


def pixels_alike(image: Array, counts: Array) -> float:
    """How many pixels of an image amount to one independent one: the sum of squares of its autocorrelation.

    The variance of the correlation of n pixels of two unrelated images is that over n (Bartlett 1935).
    """
    reach = [min(_CORRELATED, size // 4) for size in image.shape]
    plane, _ = MaskedPlanes(image, counts, ShiftWindow.symmetric(*reach), 0.25).planes(image[None], counts[None])
    xp = array_namespace(image)
    return max(float(xp.where(xp.isnan(plane), 0.0, plane**2).sum()), 1.0)


class MaskedPlanes:
    """Planes of frames against one image.

    Parameters
    ----------
    image, counts : ndarray, shape (h, w)
        The image and which of its pixels count.
    window : ShiftWindow
        Shifts to be added to a frame to land on the image.
    min_overlap : float
        Smallest overlap of a shift, as a share of the largest of the window, both in pixels that count.
    """

    def __init__(self, image: Array, counts: Array, window: ShiftWindow, min_overlap: float) -> None:
        xp = array_namespace(image)
        self._window, self._shape = window, image.shape
        rows, columns = image.shape
        self._size = (
            smallest_size(rows, rows, window.dy_min, window.dy_max),
            smallest_size(columns, columns, window.dx_min, window.dx_max),
        )
        self._fft = _fft_of(xp)
        self.level = _mean(image, counts)
        self._min_overlap = min_overlap
        self._spectra = self._transformed(xp.where(counts, image - self.level, 0.0)[None], counts[None])
        centred = xp.where(counts, image - self.level, 0.0)
        self._power = float((centred * centred).sum()) / max(float(counts.sum()), 1.0)

    def planes(self, frames: Array, counts: Array) -> tuple[Array, Array]:
        """Scores (n, ny, nx) of frames (n, h, w), NaN where the overlap is too small, and the overlap in pixels."""
        xp = array_namespace(frames)
        level = xp.where(counts, frames, 0.0).sum(axis=(1, 2)) / xp.maximum(counts.sum(axis=(1, 2)), 1)
        centred = xp.where(counts, frames - level[:, None, None], 0.0)
        power = (centred * centred).sum(axis=(1, 2)) / xp.maximum(counts.sum(axis=(1, 2)), 1)
        one, squares, mask = self._spectra
        other, other_squares, other_mask = (spectrum.conj() for spectrum in self._transformed(centred, counts))
        number = xp.rint(self._windowed(mask * other_mask))
        enough = number >= xp.maximum(self._min_overlap * number.max(axis=(1, 2), keepdims=True), _FEWEST)
        safe = xp.maximum(number, 1.0)
        sum_one, sum_other = self._windowed(one * other_mask), self._windowed(mask * other)
        product = self._windowed(one * other) - sum_one * sum_other / safe
        own = self._windowed(squares * other_mask) - sum_one**2 / safe
        others = self._windowed(mask * other_squares) - sum_other**2 / safe
        varies = (own > _VARIANCE * self._power * safe) & (others > _VARIANCE * power[:, None, None] * safe)
        root = xp.sqrt(xp.where(varies, own * others, 1.0))
        return xp.where(enough & varies, xp.clip(product / root, -1.0, 1.0), np.nan), number

    def _transformed(self, centred: Array, counts: Array) -> tuple[Array, Array, Array]:
        transform = self._fft.rfft2
        return tuple(transform(part, s=self._size) for part in (centred, centred**2, counts.astype(np.float64)))

    def _windowed(self, spectrum: Array) -> Array:
        """Elements of the window of an inverse transform."""
        xp = array_namespace(spectrum)
        rows = self._fft.ifft(spectrum, axis=1)[:, xp.asarray(self._window.dys % self._size[0])]
        whole = self._fft.irfft(rows, n=self._size[1], axis=2)
        return whole[:, :, xp.asarray(self._window.dxs % self._size[1])]


def _mean(image: Array, counts: Array) -> float:
    xp = array_namespace(image)
    return float(xp.where(counts, image, 0.0).sum()) / max(float(counts.sum()), 1.0)


def _fft_of(xp: Any) -> Any:
    return importlib.import_module("scipy.fft" if xp is np else "cupyx.scipy.fft")
