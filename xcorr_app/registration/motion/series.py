"""Motion of frames against each other: summed from frame to frame, or against the mean of the others.

``previous``: the motions of the steps, one after the other; for series whose look changes. Their covariances add up.
``template``: from the motions against the first frame, the mean of all frames so aligned but the one measured, until
no corner moves any more; noise of the first frame is in all motions against it, and not in these.
``mean``: the same, but motions count from the mean of all, so that these have no mean shift, turn or scale; begun with
the mean of the frames as they lie where that finds more of them.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration import quality
from xcorr_app.registration.motion.result import MotionResult
from xcorr_app.registration.motion.whole_frames import OTHERS, FrameMotion, MotionMeasurement, motion_of
from xcorr_app.registration.solver.basis import corner_moves
from xcorr_app.registration.stack.frames import Frames, shows_something
from xcorr_app.registration.stack.passes import Pass
from xcorr_app.registration.warping.matrices import Matrix, about_corner
from xcorr_app.registration.warping.warp import warp_frames

_ROUNDS = 4
"""Of a template at most."""
_CONVERGED = 0.005
"""Pixels that a corner moves by when a template is as good as it gets."""

Moved = Callable[[int], Array | None]
"""A frame by its number as it is aligned, NaN where it shows nothing; None of frames that are left out."""


class LeaveOneOutMean:
    """For each frame, the mean of all others as they are aligned."""

    def __init__(self, frames: Frames, moved: Moved, xp: Any) -> None:
        self._frames, self._moved, self._xp = frames, moved, xp
        walk = Pass(frames.count, frames.shape[0] * frames.shape[1], xp is not np)
        self._total, self._count = functools.reduce(_added, walk.over("template", self._of_range))

    def of(self, t: int | None) -> Array:
        """The mean (Y, X) for frame t, or of all; NaN where no other shows anything."""
        total, count = self._total, self._count
        if t is not None:
            values, seen = self._of_range(t, t + 1)
            total, count = total - values, count - seen
        return self._xp.where(count > 0, total / self._xp.maximum(count, 1), np.nan)

    def _of_range(self, start: int, stop: int) -> tuple[Array, Array]:
        total, count = (self._xp.zeros(self._frames.shape, np.float32) for _ in range(2))
        for t in range(start, stop):
            frame = self._moved(t)
            if frame is not None:
                seen = self._xp.isfinite(frame)
                total, count = total + self._xp.where(seen, frame, 0.0), count + seen
        return total, count


def _added(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    return one[0] + other[0], one[1] + other[1]


def motion_against(frames: Frames, basis: Any, reference: str | int | Array, **how: Any) -> MotionResult:
    """Measure frames against any reference: see `MotionMeasurement`, and the top of this file."""
    measuring = MotionMeasurement(frames, basis, **how)
    if not isinstance(reference, str) or reference not in OTHERS:
        return motion_of(measuring, reference)
    found, known = _unmoved(measuring)
    if len(known) < 2:
        raise ArgumentError(f"reference {reference!r}: fewer than two frames can be read")
    if reference == "previous":
        return _in_steps(measuring, found, known)
    return _against_others(measuring, found, known, from_mean=reference == "mean")


def _unmoved(measuring: MotionMeasurement) -> tuple[list[FrameMotion], list[int]]:
    """Of every frame that nothing is known, or that it does not move; and which frames show something."""
    found, known, size = [], [], len(measuring.basis.numbers)
    for t in range(measuring.frames.count):
        chunk = measuring.frames.read(t, t + 1)
        if chunk.unreadable:
            found.append(FrameMotion(flags=(quality.UNREADABLE,), unreadable=chunk.unreadable[t]))
        elif shows_something(chunk):
            found.append(FrameMotion(np.eye(3), 1.0, np.zeros((size, size)), 1.0))
            known.append(t)
        else:
            finite = bool(array_namespace(chunk.frames).isfinite(chunk.frames).all())
            found.append(FrameMotion(flags=(quality.FLAT,) if finite else (quality.NON_FINITE, quality.FLAT)))
    return found, known


def _image(measuring: MotionMeasurement, t: int) -> tuple[Array, Array | None]:
    """A frame, and which of its pixels count."""
    chunk = measuring.frames.read(t, t + 1)
    counts = measuring.counts(chunk)
    return chunk.frames[0], None if counts is None else counts[0]


def _in_steps(measuring: MotionMeasurement, found: list[FrameMotion], known: list[int]) -> MotionResult:
    """Motions from frame to frame, summed: doubtful where any before is."""
    total = found[known[0]]
    for done, (before, t) in enumerate(itertools.pairwise(known), 1):
        (step,) = measuring.of(measuring.against(*_image(measuring, before)), t, t + 1)
        flags = tuple(flag for flag in step.flags if flag != quality.INHERITED)
        if total.motion is None or step.motion is None or set(total.flags) & quality.DOUBTFUL:
            flags = (*flags, quality.INHERITED)
        if total.motion is None or step.motion is None or step.covariance is None or total.covariance is None:
            total = FrameMotion(flags=flags)
        else:
            motion, covariance = step.motion @ total.motion, step.covariance + total.covariance
            total = replace(step, motion=motion, covariance=covariance, flags=flags)
        found[t] = total
        _report(measuring, done, len(known) - 1)
    return measuring.result(found, f"the frame before, summed from frame {known[0]}", known[0])


def _against_others(
    measuring: MotionMeasurement, found: list[FrameMotion], known: list[int], *, from_mean: bool
) -> MotionResult:
    """Motions against the mean of the other frames, aligned with the first or with the mean of their motions."""
    first, shape, unmoved = known[0], measuring.frames.shape, found.copy()
    against = measuring.against(*_image(measuring, first))
    for t in known[1:]:
        (found[t],) = measuring.of(against, t, t + 1)
    if from_mean and len(_sure(found)) < len(known):
        found = max(found, _round(measuring, unmoved, known, 0), key=lambda each: len(_sure(each)))
    for number in range(_ROUNDS):
        before, found = found, _round(measuring, found, known, number)
        pairs = [(now.motion, was.motion) for now, was in zip(found, before, strict=True)]
        moved = [corner_moves(now - was, shape) for now, was in pairs if now is not None and was is not None]
        if max(moved, default=0.0) < _CONVERGED:
            break
    origin = found[first].motion
    if from_mean and (sure := _sure(found)):
        origin = _mean(sure)
    if origin is not None:
        back = np.linalg.inv(origin)
        found = [one if one.motion is None else replace(one, motion=one.motion @ back) for one in found]
    return measuring.result(found, "the mean of the other frames, aligned")


def _sure(found: list[FrameMotion]) -> list[Matrix]:
    """Motions of the frames that nothing speaks against."""
    return [one.motion for one in found if one.motion is not None and quality.is_trusted(one.flags)]


def _mean(motions: list[Matrix]) -> Matrix:
    """Mean of motions, one of their kind: that of turns alone would shrink, if it were not scaled as they are."""
    mean = np.mean(motions, axis=0)
    scale = np.exp(np.log(np.linalg.det(motions)).mean()) / np.linalg.det(mean)
    mean[:2, :2] *= np.sqrt(scale)
    return np.asarray(mean)


def _round(measuring: MotionMeasurement, found: list[FrameMotion], known: list[int], number: int) -> list[FrameMotion]:
    """Measure each frame against the mean of the others, moved by what is known of them."""
    taken = {t for t in known if not set(found[t].flags) & (quality.DOUBTFUL | quality.FAILED)}
    if len(taken) < 2:
        return found
    xp = array_namespace(_image(measuring, known[0])[0])

    def moved(t: int) -> Array | None:
        motion = found[t].motion
        if t not in taken or motion is None:
            return None
        image, counts = _image(measuring, t)
        counts = xp.isfinite(image) if counts is None else counts & xp.isfinite(image)
        image = image.astype(np.float32)
        lowest = xp.where(counts, image, np.inf).min() - 1
        matrix = about_corner(motion, measuring.frames.shape)[None]
        values = warp_frames(xp.where(counts, image, lowest)[None].astype(np.float32), matrix, cval=np.nan)[0]
        return xp.where(values > lowest + 0.5, values, np.nan)

    others, new = LeaveOneOutMean(measuring.frames, moved, xp), list(found)
    for done, t in enumerate(known, 1):
        mean, motion = others.of(t), found[t].motion
        against = measuring.against(mean, None if measuring.masks is None else xp.isfinite(mean))
        near = [] if motion is None else [motion]
        (new[t],) = measuring.of(against, t, t + 1, *near)
        _report(measuring, number * len(known) + done, _ROUNDS * len(known))
    return new


def _report(measuring: MotionMeasurement, done: int, total: int) -> None:
    if measuring.progress is not None:
        measuring.progress("measure", done, total)
