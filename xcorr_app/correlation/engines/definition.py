"""Engine ``definition``: every shift summed on its own in float64. The oracle, slow and plain.

``C[dy, dx] = sum over y, x of left[y + dy, x + dx] * right[y, x]``, terms outside either matrix being zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xcorr_app.correlation.engines.base import AsTheyAre, Engine
from xcorr_app.correlation.overlap import overlap_slices
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.runtime.arrays import Array


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


class DefinitionCorrelator(AsTheyAre):
    """The definition over one window."""

    def __init__(self, window: ShiftWindow) -> None:
        self._window = window

    def sums(self, left: Array, right: Array) -> Array:
        """Plain sums of every pair, shape ``(N, M, ny, nx)``, float64."""
        batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        lefts, rights = (np.broadcast_to(side, (*batch, *side.shape[-2:])) for side in (left, right))
        planes = np.empty((*batch, *self._window.shape))
        for index in np.ndindex(batch):
            planes[index] = correlate_by_definition(lefts[index], rights[index], self._window)
        return planes


DEFINITION = Engine(
    "definition",
    lambda _left, _right, window, _xp: DefinitionCorrelator(window),
    lambda xp: None if xp is np else "it runs on NumPy arrays only",
)
