"""A scene's shifts and the pattern that it moves over, in turns: each follows from the other.

Without the pattern the frames show by how much the scene has moved; by these shifts scene and pattern are told apart
(``pattern/layers.py``). Where the shifts measured are no beginning, since they followed the
pattern, the mean of all frames is the first pattern. That is a guess which mostly leads nowhere, as where parts of a
scene blink or move otherwise: it is tried on bins of pixels, and given up once nothing is left that stands still.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.measuring.measured import Measured
from xcorr_app.registration.parts.tile_bins import binned
from xcorr_app.registration.pattern.layers import Shares, separated, shares
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import ArrayFrames, Frames
from xcorr_app.registration.standard_error.significance import MAX_FALSE_ALARM

LARGE = 384
"""Rows and columns from which a part of the rows, or bins of pixels, are enough for a first look."""
_MIN_MOTION = 3.0
"""Pixels by which the scene moves at least."""
_MIN_SHARE = 0.004
"""Of the variance that aligned frames share, which a pattern has at least; less bends nothing."""
_DEVIATIONS = 6.0
ROUNDS, FIRST_ROUNDS = 10, 6
"""In which a pattern is found, and is to begin with."""
_MAX_ITERATIONS = 8
_SETTLED = 0.1
"""Change of the shifts, in standard errors, from which no further turn is taken."""
_SLOWEST = 0.9
"""Factor by which the steps of the shifts shrink beyond which it says nothing of where they lead."""


class Measure(Protocol):
    """Measures frames against a reference; as a whole, whatever moves in them, where that is asked for."""

    def __call__(
        self, frames: Frames, reference: str | int | Array, settings: Settings, *, whole: bool = False
    ) -> Measured:
        """Columns, one entry a frame."""
        ...


def moves(shifts: NDArray[np.float64]) -> bool:
    """Whether shifts (n, 2) are those of a scene that moves far enough."""
    return float(np.ptp(shifts, axis=0).max()) >= _MIN_MOTION


def stands_still(found: Shares) -> bool:
    """Whether frames share something where they are."""
    return found.static > _MIN_SHARE and found.static > _DEVIATIONS * found.chance


def has_pattern(found: Shares, shifts: NDArray[np.float64]) -> bool:
    """Whether something stands still while the scene moves."""
    return moves(shifts) and stands_still(found)


def search_pattern(stack: Array, settings: Settings, measure: Measure) -> NDArray[np.float64] | None:
    """Shifts (n, 2) of what moves in float frames (n, h, w), begun with no idea of them; None where nothing does."""
    scale = 1
    if min(stack.shape[1:]) >= LARGE and settings.roi is None:
        window = settings.window((int(stack.shape[1]), int(stack.shape[2])))
        reach = (max(window.dy_max, -window.dy_min) / 2, max(window.dx_max, -window.dx_min) / 2)
        stack, settings, scale = binned(stack), replace(settings, max_shift=reach), 2
    found = _of_scene(stack - stack.mean(axis=0), settings, measure)
    if found is None or not has_pattern(shares(stack, found.shifts), scale * found.shifts):
        return None
    layers = in_turns(stack, found.shifts, settings, measure)
    return None if layers is None else scale * layers[0]


def in_turns(
    stack: Array, shifts: NDArray[np.float64], settings: Settings, measure: Measure
) -> tuple[NDArray[np.float64], Array, Array] | None:
    """Shifts (n, 2) of the scene, pattern and scene of float frames (n, h, w), from shifts to begin with."""
    last: NDArray[np.float64] | None = None
    for _ in range(_MAX_ITERATIONS):
        found = _of_scene(stack - separated(stack, shifts, FIRST_ROUNDS, roughly=True)[0], settings, measure)
        if found is None:
            return None
        before, shifts = shifts, found.shifts
        step = shifts - before
        if np.abs(step).max() < _SETTLED * np.nanmedian(found.sigma[1:]):
            break
        if last is None:
            last = step
            continue
        # Steps shrink by the same factor each turn: where they lead to is taken at once (Aitken 1926).
        factor = float((step * last).sum() / (last * last).sum())
        shifts = shifts + step * (factor / (1 - factor) if 0 < factor < _SLOWEST else 0.0)
        last = None
        if not stands_still(shares(stack, shifts)):
            return None
    return shifts, *separated(stack, shifts, ROUNDS)


def _of_scene(frames: Array, settings: Settings, measure: Measure) -> Measured | None:
    """Measurement of frames without pattern; None where their shifts may be chance."""
    found = measure(ArrayFrames(frames), "first", settings, whole=True)
    if not np.isfinite(found.shifts).all():
        return None
    with np.errstate(invalid="ignore"):
        chance = (found.false_alarm[1:] > MAX_FALSE_ALARM) | ~(found.sigma[1:] <= settings.sure_sigma).all(axis=1)
    return None if 2 * chance.sum() >= chance.size else found
