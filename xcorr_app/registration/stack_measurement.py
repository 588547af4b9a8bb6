"""How frames of a stack are measured, whatever was taken off them: as they are, or by local contrast."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.contrast_choice import LOCAL, NOTE, by_local_contrast
from xcorr_app.registration.measuring.measured import ShiftColumns
from xcorr_app.registration.measuring.measurement import Measurement
from xcorr_app.registration.parts import masks
from xcorr_app.registration.pattern.one_layer import Residual, residual_of
from xcorr_app.registration.reference.reference_names import by_frames
from xcorr_app.registration.reference.strategies import measured_against
from xcorr_app.registration.settings import Roi, Settings
from xcorr_app.registration.stack.frames import ArrayFrames, Frames
from xcorr_app.registration.stack.passes import Pass, Progress
from xcorr_app.registration.stack.prefilter import DEFAULT_SIGMA, Contrast

Verify = Literal["auto", "all", "none"] | int

_CHECKED_ON_A_CPU = 32
"""Frames that `auto` checks where the engine is an FFT as the check is: enough to notice what is wrong throughout."""


@dataclass(frozen=True)
class Findings:
    """What was found of all frames in one go."""

    measured: ShiftColumns
    by: Measurement
    """What measured it."""
    described: str
    """The reference in words."""
    notes: tuple[str, ...]
    rest: Residual
    """What a few of the frames leave, moved by their shifts."""


@dataclass(frozen=True)
class StackMeasurement:
    """Measures frames of one stack."""

    settings: Settings
    xp: Any
    """numpy or cupy: the kind of array the frames are."""
    verified: NDArray[np.bool_]
    """(T,) frames that are measured by other means as well."""
    held: bool
    """The stack is an array in memory."""
    progress: Progress | None = None
    is_whole: bool = True
    """All that was asked for is measured, no part that was found to be fit for it."""
    begin: int = 0
    """Frame that a template is begun with."""
    frames_measured: list[int] = field(default_factory=list)
    """How many frames were measured, each time: the whole stack first."""

    @classmethod
    def of(
        cls, frames: Frames, settings: Settings, xp: Any, verify: Verify, progress: Progress | None
    ) -> StackMeasurement:
        """Measure a stack as it is asked for."""
        verified = _verified_frames(_CHECKED_ON_A_CPU if verify == "auto" and xp is np else verify, frames.count)
        return cls(settings, xp, verified, isinstance(frames, ArrayFrames), progress)

    def within(self, part: Roi | None) -> StackMeasurement:
        """Measure a part of frames alone; what was measured where there is none."""
        return self if part is None else replace(self, settings=replace(self.settings, roi=part), is_whole=False)

    def trial(
        self, frames: Frames, reference: str | int | Array, settings: Settings, *, checked: bool = False, **how: bool
    ) -> ShiftColumns:
        """Measure frames, as they are, in one way, `checked` as all are; see :class:`Measurement` for how."""
        verified = self.verified if checked else np.zeros(frames.count, dtype=bool)
        return measured_against(self._job(frames, settings, None, **how), reference, verified, self.begin)[0]

    def measure(self, frames: Frames, reference: str | int | Array) -> Findings:
        """Measure frames as they are, or by local contrast where that is asked for, or found to be surer."""
        settings = self.settings
        plain = replace(settings, contrast=Contrast()) if settings.contrast.auto else settings
        job = self._job(frames, plain, self.progress)
        measured, described, notes = measured_against(job, reference, self.verified, self.begin)
        rest = residual_of(frames, measured, settings)
        # What frames look like once they are moved says more than a trial, unless a few bright things are most of that.
        # An image of the user's is none of them. A peak broader than any of local contrast may hide these.
        if (
            by_frames(reference)
            and rest.leaves_nothing
            and masks.most_tell(measured.tiles)
            and np.median(np.nan_to_num(measured.narrowness, nan=1.0)) > np.sqrt(0.5) / DEFAULT_SIGMA
        ):
            return Findings(measured, job, described, notes, rest)
        local = by_local_contrast(frames, reference, settings, partial(self.trial, whole=True), measured)
        measured.inconsistent |= local is None
        if local:
            job = self._job(frames, replace(plain, contrast=LOCAL), self.progress)
            measured, described, notes = measured_against(job, reference, self.verified, self.begin)
            notes, rest = (*notes, NOTE), residual_of(frames, measured, settings)
        return Findings(measured, job, described, notes, rest)

    def _job(self, frames: Frames, settings: Settings, progress: Progress | None, **how: bool) -> Measurement:
        self.frames_measured.append(frames.count)
        walk = Pass(frames.count, frames.shape[0] * frames.shape[1], self.xp is not np, progress, self.held)
        return Measurement(frames, walk, settings, self.xp, **how)


def _verified_frames(verify: str | int, count: int) -> NDArray[np.bool_]:
    chosen = np.zeros(count, dtype=bool)
    if verify in ("all", "auto"):
        chosen[:] = True
    elif isinstance(verify, (int, np.integer)) and not isinstance(verify, bool) and verify >= 0:
        chosen[np.linspace(0, count - 1, min(int(verify), count)).round().astype(int)] = True
    elif verify != "none":
        raise ArgumentError(f"verify is {verify!r}: use 'auto', 'all', 'none' or a number of frames")
    return chosen
