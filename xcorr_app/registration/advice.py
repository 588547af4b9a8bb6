"""What to try where shifts are doubtful: each cause is tried on a few frames, the nearest first."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.contrast_choice import BinnedFrames
from xcorr_app.registration.estimate import estimate_from
from xcorr_app.registration.measuring.measured import spread
from xcorr_app.registration.motion.whole_frames import MotionMeasurement, motion_of
from xcorr_app.registration.parts.tile_bins import binned
from xcorr_app.registration.quality import EDGE, LOW_SCORE
from xcorr_app.registration.reference.reference_names import by_frames, compares_neighbours, reference_frame
from xcorr_app.registration.results.results import ShiftResult
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.solver.basis import basis_of
from xcorr_app.registration.stack.frames import Frames, HeldFrames, PickedFrames
from xcorr_app.registration.stack.prefilter import Contrast

_TRIED = 3
"""Frames that a cause is tried on."""
_BINNED_FROM = 640
"""Rows or columns above which a turn is looked for in means of 2 x 2 pixels."""
_MIN_SIDE = 64
"""Rows and columns that a frame has where advice is looked for."""
_TURNED = 0.5
"""Degrees from which a turn is one."""
_AS_ROOM = 1.25
"""A window is larger than what was found in it by this factor."""


def advise(
    frames: Frames, reference: str | int | Array, settings: Settings, result: ShiftResult, xp: Any
) -> str | None:
    """Say what would help, in one line; None where nothing is doubtful, or nothing of what is tried helps."""
    number = reference_frame(reference, result.reference)
    others = np.arange(frames.count) != (-1 if number is None else number)
    doubted = others & ~result.trusted
    unlike = others & np.array([LOW_SCORE in flags for flags in result.flags])
    edge = others & np.array([EDGE in flags for flags in result.flags])
    found = next((which for which in (edge, doubted, unlike) if 2 * which.sum() > others.sum()), edge)
    if not found.any() or min(frames.shape) < _MIN_SIDE or settings.masks is not None:
        return None
    first = 0 if number is None else number
    found[list(result.unreadable)] = False
    if first in result.unreadable:
        return None
    if compares_neighbours(reference):
        found = found & (np.arange(frames.count) > 0)
    candidates = np.flatnonzero(found & (np.arange(frames.count) != first))
    if not candidates.size:
        return None
    # The frame nearest to the first, and others spread over the rest: what drifts is nearest there.
    picks = spread(candidates[np.argsort(np.abs(candidates - first), kind="stable")], _TRIED)
    by_image = number is None and not by_frames(reference)
    numbers = picks if by_image else np.concatenate([[first], picks])
    sample = HeldFrames.of(PickedFrames(frames, tuple(numbers.tolist())))
    against: Any = reference if by_image else "first"
    plain = replace(settings, contrast=Contrast(), smooth_time=1, engine="auto", kernel_options=None)
    tried = slice(0 if by_image else 1, None)
    return _window(sample, against, plain, xp, tried) or _turn(sample, against, tried)


def _most(which: NDArray[np.bool_]) -> bool:
    return bool(2 * which.sum() > which.size)


def _window(frames: Frames, against: Any, settings: Settings, xp: Any, tried: slice) -> str | None:
    window = settings.window(frames.shape)
    half = tuple(size // 2 for size in settings.measured_shape(frames.shape))
    if half[0] <= window.dy_max and half[1] <= window.dx_max:
        return None
    found = estimate_from(frames, against, replace(settings, max_shift=(float(half[0]), float(half[1]))), xp=xp)
    far = np.abs(found.shifts) > (window.dy_max, window.dx_max)
    if not _most((found.trusted & far.any(axis=1))[tried]):
        return None
    most = math.ceil(_AS_ROOM * float(np.abs(found.shifts[tried][found.trusted[tried]]).max()))
    return f"the drift exceeds the window of shifts: --max-shift {most}"


def _turn(frames: Frames, against: Any, tried: slice) -> str | None:
    while max(frames.shape) > _BINNED_FROM:
        frames = HeldFrames.of(BinnedFrames(frames, (slice(None), slice(None))))
        against = against if isinstance(against, str) else binned(against[None])[0]
    found = motion_of(MotionMeasurement(frames, basis_of("rigid")), against)
    turned = found.trusted & (np.abs(found.angle) > _TURNED)
    if not _most(turned[tried]):
        return None
    return f"the frames turn by about {np.abs(found.angle[tried][turned[tried]]).min():.2g} degrees: --motion rigid"
