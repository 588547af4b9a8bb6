"""Engine ``definition``: every shift summed on its own in float64. The oracle, slow and plain."""

from __future__ import annotations

from typing import Any

import numpy as np

from xcorr_app.correlation.definition import correlate_by_definition
from xcorr_app.correlation.engines.base import AsTheyAre
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.runtime.arrays import Array


class DefinitionEngine:
    """Plain sums by their definition, on the CPU in float64."""

    name = "definition"

    def unavailable(self, xp: Any) -> str | None:
        """Say that device arrays are not taken."""
        return None if xp is np else "it runs on NumPy arrays only"

    def reads(self, dtype: np.dtype[Any]) -> bool:
        """Say that the matrices are to be in the precision of the planes."""
        return dtype == np.float32

    def bind(
        self, left_shape: tuple[int, int], right_shape: tuple[int, int], window: ShiftWindow, xp: Any
    ) -> DefinitionCorrelator:
        """Return a correlator over the window."""
        return DefinitionCorrelator(window)


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
