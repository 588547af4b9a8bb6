"""A first or last frame that shows nothing of what the others show: a shutter that was closed, a title, a test image.

All frames are lost against it, whatever they are worth. Where frames of a sample find most of each other, and not it,
the first that is found is the better reference; one as lost as the others is kept.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from xcorr_app.registration.measuring.measured import ShiftColumns, Trial
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import Frames, HeldFrames, PickedFrames
from xcorr_app.registration.stack.prefilter import Contrast
from xcorr_app.registration.standard_error.significance import MAX_FALSE_ALARM

_MIN_FRAMES = 4
"""Usable frames below which nobody can say which of them is unlike the others."""
FOUND_BY_CHANCE = 0.1
"""Share of the frames that may be found against a reference that shows nothing of them."""
_NEXT_TO_IT, _SPREAD, _CANDIDATES = 4, 9, 3
"""Frames of the sample, and those of them that the others are compared with, one after the other."""

TEMPLATE = "template"
"""Which is begun with the first frame."""


def other_reference(
    frames: Frames, reference: str | int | object, measured: ShiftColumns, settings: Settings, trial: Trial
) -> int | None:
    """Frame to take for the first or last one; None where that is as good as any, or something else was asked for."""
    usable = np.flatnonzero(measured.usable)
    if not isinstance(reference, str) or reference not in ("first", "last", TEMPLATE) or usable.size < _MIN_FRAMES:
        return None
    from_it = usable[::-1] if reference == "last" else usable
    others = from_it[1:]
    # What resembles it at the edge of the window has gone farther, and is no other scene.
    gone = measured.on_edge & ~(measured.false_alarm > MAX_FALSE_ALARM)
    if measured.valid(settings)[others].mean() > FOUND_BY_CHANCE or 2 * gone[others].sum() > others.size:
        return None
    places = np.linspace(0, usable.size - 1, min(_SPREAD, usable.size)).round().astype(int)
    numbers = from_it[np.union1d(places, np.arange(min(_NEXT_TO_IT, usable.size)))]
    sample = HeldFrames.of(PickedFrames(frames, tuple(numbers.tolist())))
    plain = replace(settings, contrast=Contrast()) if settings.contrast.auto else settings
    for place in np.unique(np.linspace(1, len(numbers) - 1, _CANDIDATES + 2).round().astype(int))[1:-1].tolist():
        found, away = np.ones(len(numbers), dtype=bool), np.abs(np.arange(1, len(numbers)) - place)
        others = 1 + away.argsort(kind="stable")[1:]
        # First the reference and the two that are next to this one, which it finds where it finds any.
        for part in np.split(np.append(0, others), [3]):
            some = PickedFrames(sample, tuple(part.tolist()))
            found[part] = trial(some, sample.chunk.frames[place], plain).trusted(plain)
            if found[0] or not found[others[:2]].any() or 2 * found.sum() <= found.size:
                break
        else:
            return int(numbers[np.flatnonzero(found)[0]])
    return None


def note(wanted: str, number: int) -> str:
    """What was done, in words."""
    place, became = ("first", "the template was begun") if wanted == TEMPLATE else (wanted, "these were compared")
    return (
        f"The {place} frame shows nothing that the others show (a closed shutter, another scene): {became} with frame "
        f"{number}."
    )
