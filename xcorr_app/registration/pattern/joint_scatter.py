"""How much more the slope of a likelihood scatters than white noise of one strength would make it.

The slope of the likelihood of a shift is a sum over the image: the slope of what moves times what both layers leave.
Where noise is stronger on bright parts, or frames fade to their rim, it scatters otherwise than the likelihood takes
it: sums over blocks, larger than noise is correlated, show by how much (White 1980, doi 10.2307/1912934, with blocks as
clusters, as in :mod:`xcorr_app.registration.standard_error.uncertainty`).
"""

from __future__ import annotations

import numpy as np
import scipy  # whose parts are loaded when they are asked for
from numpy.typing import NDArray

_BLOCK = 16
"""Rows and columns of a block."""
_MIN_BLOCKS = 4
"""Blocks along an axis below which their scatter says nothing."""

Complex = NDArray[np.complex128]


def scatter_over_white(
    slopes: Complex, left: Complex, places: tuple[NDArray[np.intp], ...], shape: tuple[int, int], noise: float
) -> float | None:
    """Variance of sums over images (h, w) of slopes times what is left, over that by white noise; None of small ones.

    Parameters
    ----------
    slopes : ndarray, shape (n, 2, K)
        Spectra along rows and columns, at these places of a half plane.
    left : ndarray, shape (n, K)
        Spectra of what is left.
    places : tuple of ndarray, each of shape (K,)
    shape : tuple of int
    noise : float
        Mean square of a coefficient of the noise.
    """
    rows, columns = (size // _BLOCK for size in shape)
    if min(rows, columns) < _MIN_BLOCKS:
        return None
    found = expected = 0.0
    for along, rest in zip(slopes, left, strict=True):
        residual = _image(rest, places, shape)
        for slope in along:
            image = _image(slope, places, shape)
            part = (image * residual)[: rows * _BLOCK, : columns * _BLOCK]
            sums = part.reshape(rows, _BLOCK, columns, _BLOCK).sum(axis=(1, 3))
            found += float((sums**2).sum())
            expected += float((image**2).sum()) * noise / (shape[0] * shape[1])
    return found / expected if expected > 0 else None


def _image(values: Complex, places: tuple[NDArray[np.intp], ...], shape: tuple[int, int]) -> NDArray[np.float64]:
    half = np.zeros((shape[0], shape[1] // 2 + 1), dtype=np.complex128)
    half[places] = values
    return np.asarray(scipy.fft.irfft2(half, shape))
