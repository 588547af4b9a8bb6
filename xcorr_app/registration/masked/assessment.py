"""Frames of which only some pixels count, before and after they are moved."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.masked.rules import Masks


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
    xp, found = array_namespace(counts), counts
    for axis, by in enumerate(shift.tolist()):
        lowest, highest = math.floor(by), math.ceil(by)
        found = _shifted(xp, found, lowest, axis) & _shifted(xp, found, highest, axis)
    return found


def _shifted(xp: Any, counts: Array, by: int, axis: int) -> Array:
    size, found = counts.shape[axis], xp.zeros_like(counts)
    if abs(by) < size:
        to, from_ = slice(max(by, 0), size + min(by, 0)), slice(max(-by, 0), size + min(-by, 0))
        found[(slice(None),) * axis + (to,)] = counts[(slice(None),) * axis + (from_,)]
    return found
