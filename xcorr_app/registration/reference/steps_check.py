"""Sums of steps from frame to frame, held against a few frames measured directly.

Between neighbouring frames what moves and what stands still are nearly at the same place: one peak holds both, and each
step is pulled a little. Against the first frame the two are apart.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from xcorr_app.registration.measuring.measured import Measured
from xcorr_app.registration.quality import is_trusted
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import Frames, PickedFrames

_FRAMES = 7
"""Looked at, the first among them."""
_FEWEST = 3
_APART = 0.5
"""Pixels, beyond three standard errors, by which a sum is off that is not the shift of the frame."""


def astray(
    frames: Frames, measured: Measured, settings: Settings, measure: Callable[[Frames], Measured]
) -> NDArray[np.bool_]:
    """Which sums (T,) are not to be trusted: at, and next to, frames whose direct measurement is sure and differs.

    `measure` measures frames against their first. Frames that it is not sure of, or cannot reach, say nothing.
    """
    wrong = np.zeros(frames.count, dtype=bool)
    usable = np.flatnonzero(measured.usable & np.isfinite(measured.shifts).all(axis=1))
    if usable.size < _FEWEST:
        return wrong
    few = usable[np.unique(np.linspace(0, usable.size - 1, min(_FRAMES, usable.size)).round().astype(int))]
    direct = measure(PickedFrames(frames, tuple(int(number) for number in few)))
    sums = measured.shifts[few] - measured.shifts[few[0]]
    window = settings.window(frames.shape)
    reach = np.array([max(-window.dy_min, window.dy_max), max(-window.dx_min, window.dx_max)])
    with np.errstate(invalid="ignore"):
        error = np.hypot(direct.sigma, measured.sigma[few]).max(axis=1)
        off = np.abs(sums - direct.shifts).max(axis=1) - _APART > 3 * np.where(np.isfinite(error), error, 0.0)
    off &= (np.abs(sums) < reach).all(axis=1)
    off &= np.array([is_trusted(flags) for flags in direct.flags(settings)], dtype=bool)
    for i in np.flatnonzero(off):
        # What lies between two that agree is trusted; the neighbours of one that does not are not.
        wrong[few[i - 1] + 1 : few[i + 1] if i + 1 < few.size else wrong.size] = True
    return wrong
