"""Light that changes from place to place over the series: found on a few frames, taken off all of them for measuring.

A frame that is lit more strongly on one side than its reference is pulled towards that side: the slope of a smooth gain
enters the slope of the correlation. Gain and offset of every frame against one of them are smooth fields
(``light/light_field.py``); frames less the offset and over the gain are all lit as the series is in
the mean. Where noise is stronger than the scene it must not be raised where the light is faint: there the fields are
divided by less.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import array_namespace
from xcorr_app.registration.light.even_light import EvenlyLitFrames
from xcorr_app.registration.light.light_field import Light, ReferenceLight
from xcorr_app.registration.measuring.measured import ShiftColumns, Trial, near_each_other, spread
from xcorr_app.registration.parts.tiles import Grid
from xcorr_app.registration.pattern.one_layer import Residual
from xcorr_app.registration.quality import AMBIGUOUS_RATIO
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import Frames
from xcorr_app.registration.stack.passes import Pass
from xcorr_app.registration.stack.prefilter import Contrast, Prefilter
from xcorr_app.registration.stack.preparation import prepare
from xcorr_app.registration.standard_error.significance import MAX_FALSE_ALARM

_AT_ONCE = 8
"""Frames whose light is fitted together."""
_MIN_CHANGE = 0.005
"""Share of what moved frames show that differs among them, below which no light bends a shift by much."""
_MIN_EXPLAINED = 0.67
"""Of what a constant gain leaves of tiles, the share that the uneven one explains, of one frame; of more, chance
reaches as much less as the root of their number is larger."""
_MIN_SHARE = 0.5
"""Of what a constant gain leaves beyond noise, the share that the uneven one explains."""
_MAX_REMAINDER = 60.0
"""Squares that it leaves, in units of noise: what is more is a change of the scene."""
_MAX_BENDING = 2.0
"""Pixels by which light bends a shift at most."""


def evenly_lit(
    frames: Frames, measured: ShiftColumns, settings: Settings, measure: Trial, rest: Residual
) -> EvenlyLitFrames | None:
    """Frames under even light; None where their light does not change, or is not all that changes.

    Light bends the shifts that it is found by: what is found with them serves to measure shifts once more, and these to
    find it again. So it is for a few frames, which say whether it is light, and for all. `measured` are frames as they
    are; `measure` measures them against one, in one pass.
    """
    is_open = settings.by_default and frames.count > 1 and all(Grid(settings.measured_shape(frames.shape)).count)
    if not is_open or rest.share < _MIN_CHANGE:
        return None
    known = _known(measured, frames.shape)
    if known.size < 2:
        return None
    # In the middle of all, it has most in common with each.
    distance = np.abs(measured.shifts[known] - np.median(measured.shifts[known], axis=0)).max(axis=1)
    middle = int(known[distance.argmin()])
    shifts = measured.shifts - measured.shifts[middle]
    plain = replace(settings, contrast=Contrast(), smooth_time=1)
    reference = ReferenceLight(prepare(frames.read(middle, middle + 1), _as_they_are(plain)).frames[0])
    few = spread(known[known != middle])
    if not changes(_compared(reference, frames, few, shifts, _as_they_are(plain))):
        return None
    lit = _lit(reference, frames, middle, known, shifts, plain)
    return _lit(reference, frames, middle, known, _once_more(lit, middle, plain, measure), plain)


def _lit(
    reference: ReferenceLight,
    frames: Frames,
    middle: int,
    known: NDArray[np.intp],
    shifts: NDArray[np.float64],
    settings: Settings,
) -> EvenlyLitFrames:
    """Frames evened by their light against the middle one, with shifts (T, 2) onto that."""
    others = known[known != middle]
    light = _compared(reference, frames, others, shifts, _as_they_are(settings))
    place = int(np.searchsorted(others, middle))
    gain, offset = np.insert(light.gain, place, 0.0, axis=0), np.insert(light.offset, place, reference.offset, axis=0)

    def everywhere(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of frames that could not be compared what lies between the others'."""
        return np.stack([np.interp(np.arange(frames.count), known, column) for column in values.T], axis=1)

    return EvenlyLitFrames(frames, everywhere(gain), everywhere(offset), everywhere(shifts[known]), reference.noise)


def _once_more(lit: EvenlyLitFrames, middle: int, settings: Settings, measure: Trial) -> NDArray[np.float64]:
    """Shifts (T, 2) onto the middle frame, measured under even light; as they were where others are found."""
    shifts = measure(lit, middle, settings).shifts
    shifts = shifts - shifts[middle]
    near = np.abs(shifts - lit.shifts).max(axis=1, keepdims=True) < _MAX_BENDING
    return np.where(near, shifts, lit.shifts)


def is_nearer(lit: EvenlyLitFrames, before: ShiftColumns, after: ShiftColumns) -> bool:
    """Whether shifts of evenly lit frames lie no farther than those before from where light was found with them.

    There each frame is weighted by its light and that of the one it is compared with, as it is not in a template, nor
    in steps from frame to frame: what light leaves at their rims bends these.
    """
    apart = []
    for shifts in (before.shifts, after.shifts):
        beside = shifts - lit.shifts
        beside = beside[np.isfinite(beside).all(axis=1)]
        apart.append(np.minimum(np.abs(beside - np.median(beside, axis=0)), _MAX_BENDING))
    return bool(np.mean(apart[1] ** 2) <= np.mean(apart[0] ** 2))


def _known(measured: ShiftColumns, shape: tuple[int, int]) -> NDArray[np.intp]:
    """Frames whose shifts are no chance, and leave half of the frame in common with most others."""
    known = near_each_other(measured, shape)
    by_chance = (measured.false_alarm > MAX_FALSE_ALARM) | (measured.peak_ratio < AMBIGUOUS_RATIO)
    return known[~by_chance[known]]


def _as_they_are(settings: Settings) -> Settings:
    """Settings by which frames are read whole."""
    return replace(settings, roi=None, prefilter=Prefilter(), contrast=Contrast())


def _compared(
    reference: ReferenceLight, frames: Frames, numbers: NDArray[np.intp], shifts: NDArray[np.float64], plain: Settings
) -> Light:
    """Light of the frames of these numbers against the reference."""
    groups = [numbers[first : first + _AT_ONCE] for first in range(0, numbers.size, _AT_ONCE)]

    def job(start: int, stop: int) -> list[Light]:
        found = []
        for these in groups[start:stop]:
            read = [prepare(frames.read(int(number), int(number) + 1), plain).frames for number in these]
            found.append(reference.compared(array_namespace(read[0]).concatenate(read), shifts[these]))
        return found

    walk = Pass(len(groups), _AT_ONCE * frames.shape[0] * frames.shape[1], reference.on_device)
    found = [light for some in walk.over("light", job) for light in some]
    return Light.joined(found)


def changes(light: Light) -> bool:
    """Whether the gain of the frames looked at is uneven, of some as a rule more than of others, and nothing else."""
    freedom = np.maximum(light.tiles - light.gain.shape[1], 1)
    # As large in all frames, what is left counts in none more than in others.
    constant, uneven = light.constant.sum(), light.uneven.sum()
    is_sure = constant - uneven > _MIN_EXPLAINED / np.sqrt(light.tiles.size) * constant
    is_light = is_sure and constant - uneven > _MIN_SHARE * (constant - light.tiles.sum())
    return bool(is_light and np.median(light.uneven / freedom) < _MAX_REMAINDER)
