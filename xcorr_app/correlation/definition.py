"""Cross-correlation by its definition: float64, plain, slow. The oracle the other engines are held against.

``C[dy, dx] = sum over y, x of left[y + dy, x + dx] * right[y, x]``, terms outside either matrix being zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xcorr_app.correlation.overlap import overlap_slices
from xcorr_app.correlation.window import ShiftWindow


def correlate_by_definition(left: ArrayLike, right: ArrayLike, window: ShiftWindow) -> NDArray[np.float64]:
    """Correlation plane of one pair of matrices, each shift summed on its own in float64.

    Parameters
    ----------
    left : array_like, shape (H, W)
    right : array_like, shape (H', W')
    window : ShiftWindow
        Shifts to compute, in pixels.

    Returns
    -------
    ndarray of float64, shape `window.shape`
    """
    left = np.asarray(left, dtype=np.float64)
    right = np.asarray(right, dtype=np.float64)
    plane = np.zeros(window.shape)
    for i, dy in enumerate(window.dys):
        for j, dx in enumerate(window.dxs):
            of_left, of_right = overlap_slices(left.shape, right.shape, int(dy), int(dx))
            plane[i, j] = np.sum(left[of_left] * right[of_right])
    return plane
