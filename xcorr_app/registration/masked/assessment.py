"""Frames of which only some pixels count, before and after they are moved."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.masked.rules import Masks
from xcorr_app.registration.moving.apply import shift_frames
from xcorr_app.registration.warping.warp import Warp

_ALL = 0.999
"""Share of a pixel that comes from pixels that count, above which it counts: what rounding alone takes loses none."""


class MaskedFrames:
    """Makes NaN of pixels that do not count, of frames as they were and as they are moved.

    Parameters
    ----------
    masks : Masks
    warps : (Warp, Warp)
        By which the frames of a stack are moved, and what they show then is moved back.
    """

    def __init__(self, masks: Masks, warps: tuple[Warp, Warp]) -> None:
        self._masks, self._warp, self._back = masks, *warps

    def of(self, numbers: list[int], before: Array, after: Array) -> tuple[Array, Array]:
        """Frames (n, Y, X) of these numbers, before and after, in float32."""
        xp = array_namespace(before)
        pairs = []
        for number, was, is_now in zip(numbers, before, after, strict=True):
            if self._masks.moves:
                # What a frame does not show, once it is moved, is filled.
                shown = moved(xp.ones(was.shape, dtype=bool), number, self._warp)
                there = self._masks.of_frames(is_now[None], number, reference=True)[0] & shown
                here = moved(there, number, self._back)
            else:
                here = self._masks.of_frames(was[None], number)[0]
                there = moved(here, number, self._warp)
            pairs.append([xp.where(counts, image, np.nan) for counts, image in ((here, was), (there, is_now))])
        first, second = (xp.stack(side).astype(np.float32) for side in zip(*pairs, strict=True))
        return first, second


def moved(counts: Array, number: int, warp: Warp) -> Array:
    """Which pixels (Y, X) count once a frame is moved: those between pixels that all do."""
    return warp(counts.astype(np.float32)[None], [number], 1, "constant")[0] > _ALL


def by_shifts(shifts: NDArray[np.float64]) -> Warp:
    """What moves by shifts (T, 2), linearly."""
    return lambda frames, numbers, _order, mode: shift_frames(frames, shifts[list(numbers)], mode=mode)[0]
