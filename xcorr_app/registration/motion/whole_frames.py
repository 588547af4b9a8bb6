"""Motion of whole frames: the likeliest of a few starts refined, and what can be said about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ShapeError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration import quality
from xcorr_app.registration.masked.rules import Masks
from xcorr_app.registration.motion.result import MotionResult
from xcorr_app.registration.motion.starts import apart, likely_motions, log_polar
from xcorr_app.registration.settings import DEFAULT_MAX_SIGMA
from xcorr_app.registration.solver.basis import Basis
from xcorr_app.registration.solver.gauss_newton import Fits
from xcorr_app.registration.solver.whole_frames import BY_CHANCE, Pyramid, centred
from xcorr_app.registration.stack.frames import SINGLE, Chunk, Frames, read_reference
from xcorr_app.registration.stack.passes import Pass, Progress
from xcorr_app.registration.warping.matrices import Matrix, about_corner

_AS_LONG_AS = 8
"""On a CPU measuring the motion of a frame takes as long as the shifts of so many."""
_MIN_PIXELS = 1 << 18
"""On a device a frame takes at least as much memory as one of so many pixels."""
_MIN_SIDE = 32
"""Pixels that the shorter side of a frame has at least."""
_AMBIGUOUS_RATIO = 1.05
"""Ratio of the scores of two motions below which either may be the true one."""
OTHERS = ("previous", "mean", "template")
"""References made of several frames: :mod:`xcorr_app.registration.motion.series`."""


@dataclass(frozen=True)
class FrameMotion:
    """What was found of one frame; motions are about its middle."""

    motion: Matrix | None = None
    score: float = float("nan")
    covariance: NDArray[np.float64] | None = None
    overlap: float = 0.0
    flags: tuple[str, ...] = ()
    unreadable: str | None = None
    """Why it could not be read."""


@dataclass(frozen=True)
class MotionMeasurement:
    """What is measured, and how."""

    frames: Frames
    basis: Basis
    max_sigma: float = DEFAULT_MAX_SIGMA
    masks: Masks | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        shape = self.frames.shape
        if min(shape) < _MIN_SIDE:
            raise ShapeError(f"frames are {shape[0]} x {shape[1]}: motion needs {_MIN_SIDE} pixels a side")
        if self.masks is not None:
            self.masks.check(self.frames.count, shape)

    def counts(self, chunk: Chunk) -> Array | None:
        """Which pixels of frames count; None where all do."""
        return None if self.masks is None else self.masks.of_frames(chunk.frames, chunk.start)

    def against(self, image: Array, counts: Array | None = None) -> FrameAligner:
        """What measures frames against an image, of which some pixels may count only."""
        return FrameAligner(image, counts, self.basis, self.max_sigma, self.frames.count)

    def of(self, against: FrameAligner, first: int, last: int, *known: Matrix) -> list[FrameMotion]:
        """Measure frames `first` to `last - 1`; `known` are motions worth trying."""
        chunk, seen = self.frames.read(first, last), list(range(first, last))
        counts, images = self.counts(chunk), chunk.frames
        found = {t: FrameMotion(flags=(quality.UNREADABLE,), unreadable=why) for t, why in chunk.unreadable.items()}
        if chunk.unreadable:
            seen = [t for t in seen if t not in chunk.unreadable]
            which = array_namespace(images).asarray([t - first for t in seen], dtype=np.intp)
            images, counts = images[which], None if counts is None else counts[which]
        found |= dict(zip(seen, against.measured(images, [list(known)] * len(seen), counts), strict=True))
        return [found[t] for t in range(first, last)]

    def result(self, found: list[FrameMotion], described: str, itself: int | None = None) -> MotionResult:
        """Make a result of what was found of each frame, about the middles of frames.

        The frame that is compared with `itself` has no standard error: nothing differs, which would tell of one.
        """
        nothing, shape = np.full((3, 3), np.nan), self.frames.shape
        motions = np.stack([nothing if one.motion is None else one.motion for one in found])
        deviations = [
            np.full(6, np.nan)
            if one.covariance is None or t == itself
            else np.sqrt(np.maximum(np.diag(one.covariance), 0.0))
            for t, one in enumerate(found)
        ]
        notes = () if self.masks is None else (f"Measured by the pixels that count (mask: {self.masks.rule}).",)
        return MotionResult(
            model=self.basis.name,
            matrices=about_corner(motions, shape),
            score=np.array([one.score for one in found]),
            sigma=np.array([each[:2] for each in deviations]),
            sigma_angle=np.array(
                [
                    np.nan if self.basis.name == "affine" else np.degrees(each[2]) if self.basis.turns else 0.0
                    for each in deviations
                ]
            ),
            overlap=np.array([one.overlap for one in found]),
            flags=tuple(one.flags for one in found),
            shape=shape,
            reference=described,
            unreadable={t: one.unreadable for t, one in enumerate(found) if one.unreadable is not None},
            notes=notes,
        )


def motion_of(measuring: MotionMeasurement, reference: str | int | Array) -> MotionResult:
    """Measure frames against one image."""
    frames, shape = measuring.frames, measuring.frames.shape
    refusal = f"unknown reference {reference!r}: use {', '.join((*SINGLE, *OTHERS))}, a frame number or an image"
    image, number, described = read_reference(frames, reference, refusal)
    counts = None if measuring.masks is None else measuring.masks.of_reference(image, number)
    against = measuring.against(image, counts)
    on_device = array_namespace(image) is not np
    pixels = max(shape[0] * shape[1], _MIN_PIXELS) if on_device else _AS_LONG_AS * shape[0] * shape[1]

    def job(start: int, stop: int) -> list[FrameMotion]:
        return measuring.of(against, start, stop)

    walk = Pass(frames.count, pixels, on_device, measuring.progress)
    return measuring.result([one for some in walk.over("measure", job) for one in some], described, number)


class FrameAligner:
    """Measures a stack of so many frames against one image (h, w), of which only some pixels may count."""

    def __init__(self, image: Array, counts: Array | None, basis: Basis, max_sigma: float, count: int) -> None:
        prepared, _ = centred(image[None], None if counts is None else counts[None])
        self._basis, self._max_sigma = basis, max_sigma
        self._pyramid = Pyramid(prepared, basis, counts, count)
        self._shape = self._pyramid.levels[0].shape
        self._spectrum = log_polar(self._pyramid.levels[-1].image[None]) if basis.turns else None
        self._is_flat = not float(prepared.max()) > float(prepared.min())
        self._of_corners = basis.corners(self._shape)

    def measured(self, frames: Array, known: list[list[Matrix]], counts: Array | None = None) -> list[FrameMotion]:
        """Measure frames (T, Y, X); `known` are, for each, motions worth trying, `counts` (T, Y, X) what counts."""
        if not len(frames):
            return []
        values, damaged = centred(frames, counts)
        seen = to_host(values.max(axis=(1, 2)) > values.min(axis=(1, 2))) & (not self._is_flat)
        remarks = [(quality.NON_FINITE,) if each else () for each in to_host(damaged).tolist()]
        found = [FrameMotion(flags=(*each, quality.FLAT)) for each in remarks]
        if not seen.any():
            return found
        numbers, xp = np.flatnonzero(seen), array_namespace(frames)
        sizes = self._pyramid.sizes(values)
        small, others = sizes[-1][xp.asarray(numbers)], [known[t] for t in numbers.tolist()]
        tried = likely_motions(self._pyramid.levels[-1], self._basis, self._spectrum, small, others, self._shape)
        of = np.repeat(numbers, [len(motions) for motions in tried])
        fits = self._pyramid.refined(sizes, of, np.concatenate([np.stack(motions) for motions in tried]), counts)
        for t in numbers.tolist():
            found[t] = self._found(fits, np.flatnonzero(of == t), remarks[t])
        return found

    def _found(self, fits: Fits, rows: NDArray[np.intp], remarks: tuple[str, ...]) -> FrameMotion:
        """The best motion of those of a frame, and whether it may be another one."""
        scores = fits.score[rows]
        if np.isnan(scores).all():
            return FrameMotion(flags=(*remarks, quality.EDGE))
        best = rows[np.nanargmax(scores)]
        motion, flags, score = fits.motion[best], list(remarks), float(fits.score[best])
        others = [fits.score[row] for row in rows if apart(fits.motion[row], motion, self._shape)]
        if others and score < _AMBIGUOUS_RATIO * np.nan_to_num(others).max():
            flags.append(quality.AMBIGUOUS)
        overlap = float(fits.pixels[best]) / (self._shape[0] * self._shape[1])
        variance = np.einsum("ij,jk,ik->i", self._of_corners, fits.covariance[best], self._of_corners)
        converged, by_chance = fits.converged[best] and fits.definite[best], score < self._by_chance(overlap)
        flags += [quality.LOW_SCORE] if by_chance else []
        if by_chance or not (converged and np.sqrt(variance.max(initial=0)) <= self._max_sigma):
            flags.append(quality.UNCERTAIN)
        # Of its errors a fit that has not settled knows nothing.
        return FrameMotion(motion, score, fits.covariance[best] + (0.0 if converged else np.inf), overlap, tuple(flags))

    def _by_chance(self, overlap: float) -> float:
        """Score that unrelated noise hardly reaches for any motion that is looked at."""
        smeared = 1 + 4 * np.pi * self._pyramid.smoothing**2
        pixels = overlap * self._shape[0] * self._shape[1] / smeared
        return float((BY_CHANCE + 3) / np.sqrt(max(pixels, 1.0)))
