"""Frames of which only some pixels count, before and after they are moved."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.masked.rules import Masks
from xcorr_app.registration.moving.apply import apply_shifts

_ALL = 0.999
"""Share of a pixel that comes from pixels that count, above which it counts: what rounding alone takes loses none."""


class MaskedFrames:
    """Makes NaN of pixels that do not count, of frames as they were and as they are moved.

    Parameters
    ----------
    masks : Masks
    shifts : (T, 2) array
        By which the frames of a stack are moved.
    """

    def __init__(self, masks: Masks, shifts: NDArray[np.float64]) -> None:
        self._masks, self._shifts = masks, shifts

    def of(self, numbers: list[int], before: Array, after: Array) -> tuple[Array, Array]:
        """Frames (n, Y, X) of these numbers, before and after, in float32."""
        xp = array_namespace(before)
        pairs = []
        for number, was, is_now in zip(numbers, before, after, strict=True):
            shift = self._shifts[number]
            if self._masks.moves:
                there = self._masks.of_frames(is_now[None], number, reference=True)[0]
                here = moved(there, -shift)
            else:
                here = self._masks.of_frames(was[None], number)[0]
                there = moved(here, shift)
            pairs.append([xp.where(counts, image, np.nan) for counts, image in ((here, was), (there, is_now))])
        first, second = (xp.stack(side).astype(np.float32) for side in zip(*pairs, strict=True))
        return first, second


def moved(counts: Array, shift: NDArray[np.float64]) -> Array:
    """Which pixels (Y, X) count once an image is moved: those between pixels that all do."""
    return apply_shifts(counts.astype(np.float32), shift, "linear", "constant", 0.0) > _ALL
