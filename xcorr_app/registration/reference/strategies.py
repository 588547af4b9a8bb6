"""The references that frames can be measured against, and the passes that each takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.light.even_light import EvenlyLitFrames
from xcorr_app.registration.light.lit_pairs import LitImage
from xcorr_app.registration.measuring.measured import Measured
from xcorr_app.registration.measuring.measurement import Measurement
from xcorr_app.registration.measuring.references import FixedImage, MeanOfOthers, MedianOfOthers, Reference
from xcorr_app.registration.reference.neighbours import Neighbours
from xcorr_app.registration.reference.reference_names import NUMBERED_REFERENCES, REFERENCES, parse_reference
from xcorr_app.registration.reference.stack_statistics import Statistics
from xcorr_app.registration.reference.template import against_template, frames_to_average
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import Chunk, Frames
from xcorr_app.registration.stack.preparation import NoUsableFrameError, prepare

__all__ = ["NUMBERED_REFERENCES", "REFERENCES", "Estimation", "Outcome"]

_NOT_ALIGNED = (
    "The reference is made of frames as they are, blurred by their drift: shifts are relative to that blur. "
    "The reference 'template' aligns the frames first."
)

_WOULD_BLUR = (
    "Parts of the picture move otherwise, or come and go, and would blur a template: "
    "each frame was compared with one of them."
)

Outcome: TypeAlias = tuple[Measured, str, tuple[str, ...]]
"""What was measured, the reference in words, and notes on the whole stack."""


@dataclass(frozen=True)
class Estimation:
    """Measures a stack against the reference that is asked for, in as many passes as it takes."""

    measurement: Measurement
    begin: int = 0
    """Frame that a template is begun with, or the next one that can be."""

    @property
    def frames(self) -> Frames:
        """The stack."""
        return self.measurement.frames

    @property
    def settings(self) -> Settings:
        """How it is measured."""
        return self.measurement.settings

    @property
    def statistics(self) -> Statistics:
        """Images made of it."""
        return Statistics(self.frames, self.measurement.walk, self.settings, self.measurement.xp)

    def run(self, reference: str | int | Array, verified: NDArray[np.bool_]) -> Outcome:
        """Measure all frames; those marked in `verified` also by other means."""
        count = self.frames.count
        if isinstance(reference, (int, np.integer)) and not isinstance(reference, bool):
            return self._numbered(int(reference), verified)
        if not isinstance(reference, str):
            return self._image(reference, verified)
        name, number = parse_reference(reference)
        try:
            if name in ("first", "last"):
                return self._one_frame(name, range(count) if name == "first" else range(count)[::-1], verified)
            if name in ("mean", "median"):
                return self._others(name, verified)
            return self._template(verified) if name == "template" else self._neighbours(name, number, verified)
        except NoUsableFrameError as error:
            nothing = FixedImage(self.measurement.xp.zeros(self.settings.measured_shape(self.frames.shape)))
            return self._against(nothing, verified), "none", (str(error),)

    def _against(self, reference: Reference, verified: NDArray[np.bool_]) -> Measured:
        return self.measurement.run(reference, "measure", verified)

    def _one_frame(self, wanted: str, candidates: range, verified: NDArray[np.bool_]) -> Outcome:
        number, image = self.measurement.prepared.first_usable(candidates)
        measured = self._against(self._single(number, image), verified)
        return measured, f"{wanted} frame ({number})", _instead(candidates[0], number)

    def _numbered(self, number: int, verified: NDArray[np.bool_]) -> Outcome:
        count = self.frames.count
        if not -count <= number < count:
            raise ArgumentError(f"reference frame {number} does not exist: the stack has frames 0 to {count - 1}")
        number %= count
        try:
            measured, _, _ = self._one_frame("", range(number, number + 1), verified)
        except NoUsableFrameError:
            raise ArgumentError(f"frame {number} cannot be the reference: it is unreadable or flat") from None
        return measured, f"frame {number}", ()

    def _single(self, number: int, image: Array) -> Reference:
        """One frame for all."""
        if isinstance(self.frames, EvenlyLitFrames) and self.settings.contrast.sigma is None:
            return LitImage(image, number, self.frames, self.settings)
        return FixedImage(image)

    def _image(self, image: Array, verified: NDArray[np.bool_]) -> Outcome:
        if array_namespace(image) is not self.measurement.xp:
            raise ArgumentError("the reference image must be the same kind of array as the stack")
        working_dtype(image)
        if image.shape != self.frames.shape:
            raise ShapeError(
                f"the reference image has shape {image.shape}, frames have {self.frames.shape}: they must be equal"
            )
        prepared = prepare(Chunk(0, image[None], {}), self.settings)
        if not prepared.usable[0]:
            raise ArgumentError("the reference image has the same value everywhere, or no finite value")
        return self._against(FixedImage(prepared.frames[0]), verified), "image", ()

    def _others(self, name: str, verified: NDArray[np.bool_]) -> Outcome:
        made_of = self.statistics.mean_of_others if name == "mean" else self.statistics.median_of_others
        reference: MeanOfOthers | MedianOfOthers = made_of(None)
        if reference.count < 2:
            return self._only_frame(name, verified)
        measured = self._against(reference, verified)
        kept = frames_to_average(measured, self.settings)
        described = "usable frames"
        if 2 <= kept.sum() < reference.count:
            reference = made_of(kept)
            measured, described = self._against(reference, verified), "frames to be trusted"
        return measured, f"{name} of all {described} ({reference.count}) but the one measured", (_NOT_ALIGNED,)

    def _only_frame(self, wanted: str, verified: NDArray[np.bool_]) -> Outcome:
        measured, described, notes = self._one_frame("only", range(self.frames.count), verified)
        return measured, described, (*notes, f"There is no other usable frame to take the {wanted} of.")

    def _template(self, verified: NDArray[np.bool_]) -> Outcome:
        number, image = self.measurement.prepared.first_usable(range(self.begin, self.frames.count))
        found = against_template(self.statistics, self.measurement, (number, image), verified)
        if found.taking_part < 2:
            return self._only_frame("template", verified)
        begun = f"frame {number}" if self.begin else f"first frame ({number})"
        if found.would_blur:
            return found.measured, f"{begun}, for a template", (*_instead(self.begin, number), _WOULD_BLUR)
        described = (
            f"mean of {found.taking_part} aligned frames but the one measured, rounds: {found.rounds}, "
            f"begun with {begun}"
        )
        notes = _instead(self.begin, number)
        if not found.is_settled:
            change = (
                f"The template did not settle in {found.rounds} rounds: shifts still change by {found.change:.4f} px."
            )
            notes = (*notes, change)
        return found.measured, described, notes

    def _neighbours(self, name: str, number: int, verified: NDArray[np.bool_]) -> Outcome:
        """Against frames shortly before each, and how far these measurements contradict each other."""
        neighbours = Neighbours(self.measurement, self.measurement.prepared.first_usable(range(self.frames.count)))
        if name == "pairs":
            measured = neighbours.pairs(number, verified)
            described = "the frame before each"
            if number > 1:
                described = f"the {number} frames before each, shifts by least squares"
        elif name == "previous":
            measured, described = neighbours.previous(verified), "previous frame, shifts summed"
        else:
            measured, rounds = neighbours.rolling(number, verified)
            described = f"mean of the last {number} aligned frames, rounds: {rounds}"
        closure, first = measured.closure, neighbours.first[0]
        known = np.flatnonzero(np.isfinite(closure)) if closure is not None else np.zeros(0, np.intp)
        if closure is None or not known.size:
            lacking = (f"Closure: no later frame could be compared with frame {first} directly.",)
            return measured, described, lacking if name != "pairs" and self.frames.count > 1 else ()
        last, worst = known[-1], known[closure[known].argmax()]
        note = (
            f"Closure: compared with frame {first} directly, frame {last} lies {closure[last]:.3f} px from where "
            f"the sum of steps puts it; of {known.size} frames compared, the farthest is frame {worst}, "
            f"{closure[worst]:.3f} px."
        )
        if name == "pairs":
            note = (
                f"Closure: pairs contradict the shifts by {np.median(closure[known]):.3f} px (median of frames), most "
                f"at frame {worst}, {closure[worst]:.3f} px."
            )
        return measured, described, (note,)


def _instead(wanted: int, number: int) -> tuple[str, ...]:
    if number == wanted:
        return ()
    return (f"Frame {wanted} cannot be a reference (unreadable or flat): frame {number} is used.",)
