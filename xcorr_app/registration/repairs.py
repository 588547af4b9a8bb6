"""What is mended before a stack is measured: things that are no scene whatever the shifts are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.artefacts.defects import RepairedFrames, first_look, without_defects
from xcorr_app.registration.artefacts.drawn_in import FilledFrames, compared_on_device, may_be_drawn, without_drawn
from xcorr_app.registration.artefacts.single_hits import HitFreeFrames, without_hits
from xcorr_app.registration.settings import Roi, Settings
from xcorr_app.registration.stack.frames import Frames
from xcorr_app.registration.stack.smoothing_in_time import smoothed_in_time


@dataclass(frozen=True)
class Repaired:
    """A stack without them."""

    frames: Frames
    reference: str | int | Array
    """What is drawn into frames is taken off an image made of such frames too."""
    notes: tuple[str, ...] = ()
    drawn: NDArray[np.bool_] | None = None
    """Pixels (Y, X) that are drawn in all frames; None where there are none."""
    inner: Roi | None = None
    """What is left of frames without borders along their rims; None where that is all, or a part was asked for."""
    defects: NDArray[np.intp] | None = None
    """(n, 2) row and column of hot and dead pixels; None where there are none."""


def repaired(frames: Frames, reference: str | int | Array, settings: Settings) -> Repaired:
    """Fill what is drawn in, mend stuck lines and pixels, then single hits, and average over time where asked for.

    Only the defects of a camera are looked for where `contrast` is not ``auto``.
    """
    notes, drawn, seen, inner = list[str](), None, None, None
    if settings.contrast.auto:
        if compared := compared_on_device(frames):
            seen = first_look(frames, frames.read(0, 1), compared)
        if seen is None or may_be_drawn(seen):
            frames = without_drawn(frames, settings.roi)
    if isinstance(frames, FilledFrames):
        seen = None
        notes.append(frames.note)
        drawn, inner = frames.part, frames.inner
        if not isinstance(reference, (str, int, np.integer)):
            reference = frames.filled(reference[None])[0]
    first = frames.read(0, 1)
    seen = seen or first_look(frames, first)
    frames = without_defects(frames, first, seen)
    defects = None
    if isinstance(frames, RepairedFrames):
        notes.append(frames.note)
        defects = np.stack([frames.rows, frames.columns], axis=1) if frames.rows.size else None
    if settings.contrast.auto and seen.stands_out:
        frames = without_hits(frames)
        notes += [frames.note] if isinstance(frames, HitFreeFrames) else []
    return Repaired(smoothed_in_time(frames, settings.smooth_time), reference, tuple(notes), drawn, inner, defects)
