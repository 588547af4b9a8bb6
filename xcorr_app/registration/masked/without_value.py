"""Pixels without a value, such as those around the sector of a scanner: they stand still, and may hold the frames."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.masked.estimate import estimate_masked, takes_masks
from xcorr_app.registration.masked.rules import Masks
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.contrast import Contrast
from xcorr_app.registration.stack.frames import Frames

_SHARE = 0.02
"""Of the pixels of a frame that are zero, or are not, at least."""
_ELSEWHERE = 1.0
"""Pixels from which a shift is another."""


def lie_elsewhere(
    frames: Frames,
    reference: str | int | Array,
    settings: Settings,
    xp: Any,
    shifts: NDArray[np.float64],
    score: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Which of a few frames (n,), measured at `shifts` (n, 2), surely lie elsewhere by their pixels that are not zero.

    And resemble the reference more than all of their pixels do (`score` (n,)).
    """
    nowhere = np.zeros(frames.count, dtype=bool)
    if not takes_masks(reference, settings) or settings.masks is not None:
        return nowhere
    if not _SHARE < float((frames.read(0, 1).frames[0] == 0).mean()) < 1 - _SHARE:
        return nowhere
    masks = Masks("nonzero")
    settings = replace(settings, contrast=Contrast(), min_overlap=Settings.overlap(None, masks))
    found = estimate_masked(frames, reference, settings, masks, xp)
    with np.errstate(invalid="ignore"):
        other = ~(np.abs(found.shifts - shifts) < _ELSEWHERE).all(axis=1)
        return np.asarray(found.trusted & other & (found.score > score))
