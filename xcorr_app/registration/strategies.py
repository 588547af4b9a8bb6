"""The references that frames can be measured against, and the passes that each takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.frames import Chunk, Frames
from xcorr_app.registration.measurement import Measured, Measurement
from xcorr_app.registration.preparation import prepare
from xcorr_app.registration.references import FixedImage, PreviousUsable, Reference
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack_statistics import NoUsableFrameError, Statistics

REFERENCES = ("first", "last", "mean", "median", "previous", "template")

_MAX_ROUNDS = 12
_NOT_ALIGNED = (
    "The reference is made of frames as they are, blurred by their drift: shifts are relative to that blur. "
    "The reference 'template' aligns the frames first."
)
_SETTLED = 0.01
"""The template is settled once no frame's shift changes by more than this, in pixels."""

Outcome: TypeAlias = tuple[Measured, str, tuple[str, ...]]
"""What was measured, the reference in words, and notes on the whole stack."""


@dataclass(frozen=True)
class Estimation:
    """Measures a stack against the reference that is asked for, in as many passes as it takes."""

    frames: Frames
    settings: Settings
    measurement: Measurement
    statistics: Statistics
    xp: Any

    def run(self, reference: str | int | Array, verified: NDArray[np.bool_]) -> Outcome:
        """Measure all frames; those marked in `verified` also by other means."""
        if isinstance(reference, str):
            strategies: dict[str, Callable[[NDArray[np.bool_]], Outcome]] = {
                "first": lambda checked: self._one_frame("first", range(self.frames.count), checked),
                "last": lambda checked: self._one_frame("last", range(self.frames.count - 1, -1, -1), checked),
                "mean": self._mean,
                "median": self._median,
                "previous": self._previous,
                "template": self._template,
            }
            if reference not in strategies:
                raise ArgumentError(
                    f"unknown reference {reference!r}: use {', '.join(REFERENCES)}, a frame number or an image"
                )
            try:
                return strategies[reference](verified)
            except NoUsableFrameError as error:
                nothing = FixedImage(self.xp.zeros(self.settings.measured_shape(self.frames.shape)))
                return self._against(nothing, verified), "none", (str(error),)
        if isinstance(reference, (int, np.integer)) and not isinstance(reference, bool):
            return self._numbered(int(reference), verified)
        return self._image(reference, verified)

    def _against(self, reference: Reference, verified: NDArray[np.bool_], *, with_sigma: bool = True) -> Measured:
        return self.measurement.run(reference, "measure", verified, with_sigma=with_sigma)

    def _one_frame(
        self, wanted: str, candidates: range, verified: NDArray[np.bool_], *, with_sigma: bool = True
    ) -> Outcome:
        number, image = self.statistics.usable_frame(candidates)
        notes: tuple[str, ...] = ()
        if number != candidates[0]:
            notes = (f"Frame {candidates[0]} cannot be a reference (unreadable or flat): frame {number} is used.",)
        measured = self._against(FixedImage(image), verified, with_sigma=with_sigma)
        return measured, f"{wanted} frame ({number})", notes

    def _numbered(self, number: int, verified: NDArray[np.bool_]) -> Outcome:
        count = self.frames.count
        if not -count <= number < count:
            raise ArgumentError(f"reference frame {number} does not exist: the stack has frames 0 to {count - 1}")
        number %= count
        try:
            _, image = self.statistics.usable_frame(range(number, number + 1))
        except NoUsableFrameError:
            raise ArgumentError(f"frame {number} cannot be the reference: it is unreadable or flat") from None
        return self._against(FixedImage(image), verified), f"frame {number}", ()

    def _image(self, image: Array, verified: NDArray[np.bool_]) -> Outcome:
        if array_namespace(image) is not self.xp:
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

    def _mean(self, verified: NDArray[np.bool_]) -> Outcome:
        reference = self.statistics.mean_of_others()
        if reference.count < 2:
            return self._only_frame("mean", verified)
        text = f"mean of all usable frames ({reference.count}) but the one measured"
        return self._against(reference, verified), text, (_NOT_ALIGNED,)

    def _median(self, verified: NDArray[np.bool_]) -> Outcome:
        reference = self.statistics.median_of_others()
        count = int(reference.usable.sum())
        if count < 2:
            return self._only_frame("median", verified)
        return (
            self._against(reference, verified),
            f"median of all usable frames ({count}) but the one measured",
            (_NOT_ALIGNED,),
        )

    def _only_frame(self, wanted: str, verified: NDArray[np.bool_]) -> Outcome:
        measured, described, notes = self._one_frame("only", range(self.frames.count), verified)
        return measured, described, (*notes, f"There is no other usable frame to take the {wanted} of.")

    def _previous(self, verified: NDArray[np.bool_]) -> Outcome:
        measured = self._against(PreviousUsable(self.frames, self.settings), verified)
        if not measured.usable.any():
            raise NoUsableFrameError
        measured.steps = True
        step = measured.shifts
        measured.shifts = np.where(np.isnan(step), np.nan, np.nancumsum(step, axis=0))
        # A sum is as uncertain as its steps; one without any certainty at all is doubtful by itself.
        known = np.where(np.isfinite(measured.sigma), measured.sigma, 0.0)
        summed = np.sqrt(np.cumsum(known**2, axis=0))
        measured.sigma = np.where(np.isfinite(measured.sigma), summed, measured.sigma)
        # Each check is of one step: it starts from where the engine's own sum stood before.
        measured.fft_shifts = measured.shifts - step + measured.fft_shifts
        return measured, "previous frame, shifts summed", ()

    def _template(self, verified: NDArray[np.bool_]) -> Outcome:
        none = np.zeros_like(verified)
        measured, first, notes = self._one_frame("first", range(self.frames.count), none, with_sigma=False)
        change = np.inf
        rounds = 0
        while change > _SETTLED and rounds < _MAX_ROUNDS:
            rounds += 1
            took_part = np.isfinite(measured.score) & ~measured.on_edge
            if took_part.sum() < 2:
                return self._only_frame("template", verified)
            shifts = measured.shifts
            template = self.statistics.aligned_mean_of_others(shifts, took_part)
            # Any round may be the last, but for the one that verifies.
            measured = self._against(template, none, with_sigma=not verified.any())
            offset = self._hold_origin(measured, shifts, took_part)
            change = float(np.nanmax(np.abs(measured.shifts - shifts)[took_part], initial=0.0))
        if verified.any():
            measured = self._against(template, verified)
            measured.shifts = measured.shifts - offset
            measured.fft_shifts = measured.fft_shifts - offset
        described = (
            f"mean of {int(took_part.sum())} aligned frames but the one measured, rounds: {rounds}, begun with {first}"
        )
        if change > _SETTLED:
            notes = (*notes, f"The template did not settle in {rounds} rounds: shifts still change by {change:.3f} px.")
        return measured, described, notes

    @staticmethod
    def _hold_origin(
        measured: Measured, before: NDArray[np.float64], took_part: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Take out what all shifts changed by alike: a template fixes shifts only up to a common one."""
        offset: NDArray[np.float64] = np.nanmedian((measured.shifts - before)[took_part], axis=0)
        measured.shifts = measured.shifts - offset
        return offset
