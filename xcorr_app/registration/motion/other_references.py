"""Motion of frames against each other: summed from frame to frame, or against the mean of the others.

``previous``: the motions of the steps, one after the other; for series whose look changes. Their covariances add up.
``template``: from the motions against the first frame, the mean of all frames so aligned but the one measured, until
no corner moves any more; noise of the first frame is in all motions against it, and not in these.
``mean``: the mean of all frames as they are but the one measured, for frames that hardly move.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration import quality
from xcorr_app.registration.motion.gauss_newton import corner_moves
from xcorr_app.registration.motion.models import Model
from xcorr_app.registration.motion.result import MotionResult
from xcorr_app.registration.motion.whole_frames import Against, Found, motion_of, motion_result
from xcorr_app.registration.settings import DEFAULT_MAX_SIGMA
from xcorr_app.registration.stack.frames import Frames
from xcorr_app.registration.stack.passes import Progress
from xcorr_app.registration.warping.matrices import Matrix, about_corner
from xcorr_app.registration.warping.warp import warp_frames

OTHERS = ("previous", "mean", "template")
_ROUNDS = 4
_SETTLED = 0.005
"""Pixels that a corner moves by when a template is as good as it gets."""


def motion_against(
    frames: Frames,
    model: Model,
    reference: str | int | Array,
    *,
    max_sigma: float = DEFAULT_MAX_SIGMA,
    progress: Progress | None = None,
) -> MotionResult:
    """Measure frames against any reference: see `motion_of`, and the top of this file."""
    if not isinstance(reference, str) or reference not in OTHERS:
        return motion_of(frames, model, reference, max_sigma=max_sigma, progress=progress)
    series = _Series(frames, model, max_sigma, progress)
    if series.known.size < 2:
        raise ArgumentError(f"reference {reference!r}: fewer than two frames can be read")
    if reference == "previous":
        return series.in_steps()
    return series.against_others(aligned=reference == "template")


class _Series:
    """Frames of a stack that are compared with each other; motions are about their middles."""

    def __init__(self, frames: Frames, model: Model, max_sigma: float, progress: Progress | None) -> None:
        self._frames, self._model, self._max_sigma, self._progress = frames, model, max_sigma, progress
        self._unreadable: dict[int, str] = {}
        usable = []
        for t in range(frames.count):
            chunk = frames.read(t, t + 1)
            if chunk.unreadable:
                self._unreadable[t] = chunk.unreadable[t]
            elif bool((chunk.frames[0] != chunk.frames[0, :1, :1]).any()):
                usable.append(t)
        self.known: NDArray[np.intp] = np.array(usable, dtype=np.intp)
        """Numbers of the frames that show something."""

    def in_steps(self) -> MotionResult:
        """Motions from frame to frame, summed."""
        found = self._nothing()
        first = int(self.known[0])
        total = self._itself()
        found[first] = total
        for done, (before, t) in enumerate(zip(self.known[:-1].tolist(), self.known[1:].tolist(), strict=True), 1):
            step = self._measured(Against(self._image(before), self._model, self._max_sigma), t, [])
            total = self._sum(total, step)
            found[t] = total
            self._report(done, self.known.size - 1)
        return self._result(found, f"the frame before, summed from frame {first}")

    def against_others(self, *, aligned: bool) -> MotionResult:
        """Motions against the mean of the other frames, aligned with the first or as they are."""
        first = int(self.known[0])
        found = self._nothing()
        if aligned:
            reference = Against(self._image(first), self._model, self._max_sigma)
            for t in self.known.tolist():
                found[t] = self._itself() if t == first else self._measured(reference, t, [])
        else:
            for t in self.known.tolist():
                found[t] = self._itself()
        for number in range(_ROUNDS if aligned else 1):
            before = [one.motion for one in found]
            found = self._round(found, number)
            moved = [
                float(corner_moves(one.motion - was, self._frames.shape))
                for one, was in zip(found, before, strict=True)
                if one.motion is not None and was is not None
            ]
            if max(moved, default=0.0) < _SETTLED:
                break
        if aligned and (own := found[first].motion) is not None:
            back = np.linalg.inv(own)
            found = [one if one.motion is None else replace(one, motion=one.motion @ back) for one in found]
        what = "aligned" if aligned else "as they are"
        return self._result(found, f"the mean of the other frames, {what}")

    def _round(self, found: list[Found], number: int) -> list[Found]:
        """Measure each frame against the mean of the others, moved by what is known of them."""
        total, count = None, None
        taken = [t for t in self.known.tolist() if not set(found[t].flags) & (quality.DOUBTFUL | quality.FAILED)]
        moved: dict[int, tuple[Array, Array]] = {}
        for t in taken:
            values, seen = moved[t] = self._moved(t, found[t].motion)
            total, count = (values, seen) if total is None or count is None else (total + values, count + seen)
        if total is None or count is None or len(taken) < 2:
            return found
        new = list(found)
        for done, t in enumerate(self.known.tolist(), 1):
            values, seen = moved.get(t, (0.0, 0.0))
            xp, others = array_namespace(total), count - seen
            mean = xp.where(others > 0, (total - values) / xp.maximum(others, 1), np.nan)
            motion = found[t].motion
            near = [] if motion is None else [motion]
            new[t] = self._measured(Against(mean, self._model, self._max_sigma), t, near)
            self._report(number * self.known.size + done, _ROUNDS * self.known.size)
        return new

    def _moved(self, t: int, motion: Matrix | None) -> tuple[Array, Array]:
        """A frame moved onto the reference, zero where it shows nothing, and where it shows something."""
        image = self._image(t).astype(np.float32)
        xp = array_namespace(image)
        matrix = about_corner(np.eye(3) if motion is None else motion, self._frames.shape)
        lowest = float(xp.nanmin(image)) - 1
        values = warp_frames(xp.where(xp.isfinite(image), image, lowest)[None], matrix[None], 1, "constant", np.nan)[0]
        seen = xp.isfinite(values) & (values > lowest + 0.5)
        return xp.where(seen, values, 0.0), seen.astype(np.float32)

    def _image(self, t: int) -> Array:
        image: Array = self._frames.read(t, t + 1).frames[0]
        return image

    def _measured(self, reference: Against, t: int, known: list[Matrix]) -> Found:
        return reference.measured(self._frames.read(t, t + 1).frames, [known])[0]

    def _sum(self, total: Found, step: Found) -> Found:
        """A motion and the next: doubtful where either is."""
        if total.motion is None or step.motion is None:
            return Found(flags=(*step.flags, quality.INHERITED))
        doubtful = set(total.flags) & quality.DOUBTFUL
        flags = (
            *(flag for flag in step.flags if flag != quality.INHERITED),
            *((quality.INHERITED,) if doubtful else ()),
        )
        covariance = step.covariance
        if covariance is not None and total.covariance is not None:
            covariance = covariance + total.covariance
        return replace(step, motion=step.motion @ total.motion, covariance=covariance, flags=flags)

    def _itself(self) -> Found:
        numbers = len(self._model.slopes(*(np.ones((1, 1)) for _ in range(4))))
        return Found(np.eye(3), 1.0, np.zeros((numbers, numbers)), 1.0)

    def _nothing(self) -> list[Found]:
        """Of every frame that nothing is known."""
        return [
            Found(
                flags=(quality.UNREADABLE if t in self._unreadable else quality.FLAT,),
                unreadable=self._unreadable.get(t),
            )
            for t in range(self._frames.count)
        ]

    def _result(self, found: list[Found], described: str) -> MotionResult:
        return motion_result(self._model, found, self._frames.shape, described, self._unreadable)

    def _report(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress("measure", done, total)
