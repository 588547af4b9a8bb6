"""Motion that differs from place to place: patches of a frame matched one by one, then one smooth field through all.

Every frame starts from its rigid shift. Its patches are compared with those of the reference in one batch, within the
largest deviation from that shift. Patches whose peak chance may have made, that lie on the edge of the search or do not
belong to their neighbours take no part: the start of the field is there the Gaussian-weighted local-linear regression
of the others, each weighted by its score. Then the field is fitted to all pixels at once (`field_fit`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.measuring.measurement import Measurement
from xcorr_app.registration.motion.halved_frames import HalvedFrames, halved_image
from xcorr_app.registration.motion.result import MotionResult
from xcorr_app.registration.patches.fitted_fields import FittedFields
from xcorr_app.registration.patches.patch_fit import PatchFit, PatchOptions
from xcorr_app.registration.patches.patch_references import REFERENCES, references_of
from xcorr_app.registration.patches.patch_result import RigidShifts, result_of
from xcorr_app.registration.reference.strategies import Estimation
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.contrast import Contrast
from xcorr_app.registration.stack.frames import ArrayFrames, Frames
from xcorr_app.registration.stack.passes import Pass, Progress

_AS_LONG_AS = 2
"""On a CPU the patches of a frame take as much memory as the shifts of so many."""


def patches_of(
    frames: Frames,
    reference: str | int | Array,
    options: PatchOptions,
    *,
    max_sigma: float,
    max_shift: float | tuple[float, float] | None = None,
    progress: Progress | None = None,
) -> MotionResult:
    """Measure the motion of the patches of frames that are read as needed.

    `max_shift` in pixels is that of whole frames, by default a quarter of them.
    """
    if min(frames.shape) < options.patch:
        raise ShapeError(
            f"patches of {options.patch} pixels do not fit into frames of {frames.shape[0]} x {frames.shape[1]}: "
            "give a smaller patch"
        )
    if isinstance(reference, str) and reference not in REFERENCES:
        raise ArgumentError(f"unknown reference {reference!r}: use {', '.join(REFERENCES)}, a frame number or an image")
    xp = array_namespace(frames.read(0, 1).frames)
    rigid = _rigid(frames, reference, max_shift, options.half, xp, progress)
    fit = PatchFit(frames.shape, references_of(frames, reference, rigid.shifts, rigid.flags, xp), options, xp)

    def measure(first: int, last: int) -> FittedFields:
        return fit.measured(frames.read(first, last).frames, first, rigid.shifts[first:last])

    on_device = xp is not np
    pixels = frames.shape[0] * frames.shape[1] * (1 if on_device else _AS_LONG_AS)
    walk = Pass(frames.count, pixels, on_device, progress, held=on_device and isinstance(frames, ArrayFrames))
    found = FittedFields.joined(list(walk.over("patches", measure)))
    return result_of(found, rigid, fit.grid, frames.shape, max_sigma)


def _rigid(
    frames: Frames,
    reference: str | int | Array,
    max_shift: float | tuple[float, float] | None,
    half: int,
    xp: Any,
    progress: Progress | None,
) -> RigidShifts:
    """Shifts as `estimate_shifts` finds them, but of frames as a whole: parts that move otherwise are expected.

    Where patches are matched at half their size, so are the frames.
    """
    held = xp is not np and isinstance(frames, ArrayFrames)
    if half == 2:
        frames = HalvedFrames(frames)
        reference = halved_image(reference) if not isinstance(reference, (str, int, np.integer)) else reference
    reach = None if max_shift is None else np.broadcast_to(np.asarray(max_shift, np.float64) / half, 2)
    # Patches are looked for around these shifts: a hundredth of a pixel that weights would gain is nothing to them.
    wanted = None if reach is None else (float(reach[0]), float(reach[1]))
    settings = Settings(contrast=Contrast(), weighting="none", max_shift=wanted)
    walk = Pass(frames.count, frames.shape[0] * frames.shape[1], xp is not np, progress, held=held)
    estimation = Estimation(Measurement(frames, walk, settings, xp, whole=True))
    measured, described, notes = estimation.run(reference, np.zeros(frames.count, dtype=bool))
    return RigidShifts(half * measured.shifts, measured.flags(settings), described, notes, measured.reasons)
