"""Shifts at which two matrices do not overlap are zero by definition: they are written, not computed.

A transform must be as long as its farthest shift; without this a window far outside the matrices would take memory
for that distance, not for its own size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xcorr_app.correlation.engines.base import AsTheyAre, Correlator
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.runtime.arrays import Array


def over_overlaps(
    make: Callable[[ShiftWindow], Correlator],
    left_shape: tuple[int, int],
    right_shape: tuple[int, int],
    window: ShiftWindow,
    xp: Any,
) -> Correlator:
    """Make a correlator that computes only the shifts of a window at which the matrices overlap."""
    computed = window.overlapping(left_shape, right_shape)
    if computed == window:
        return make(window)
    if computed is None:
        return _NoOverlap(window, xp)
    return _ZeroFrame(make(computed), computed, window, xp)


class _ZeroFrame:
    """Lays the planes of another correlator into zeros."""

    def __init__(self, correlator: Correlator, computed: ShiftWindow, window: ShiftWindow, xp: Any) -> None:
        self.left, self.right = correlator.left, correlator.right
        self._correlator, self._xp = correlator, xp
        self._shape, self._place = window.shape, computed.inside(window)

    def sums(self, left: Array, right: Array) -> Array:
        computed = self._correlator.sums(left, right)
        planes = self._xp.zeros((*computed.shape[:-2], *self._shape), computed.dtype)
        planes[..., *self._place] = computed
        return planes


class _NoOverlap(AsTheyAre):
    """Nothing to compute: zeros for every pair."""

    def __init__(self, window: ShiftWindow, xp: Any) -> None:
        self._shape, self._xp = window.shape, xp

    def sums(self, left: Array, right: Array) -> Array:
        batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        return self._xp.zeros((*batch, *self._shape), left.dtype)
