"""Motion of whole frames: the likeliest of a few starts refined, and what can be said about it.

On a CPU frame by frame, in several threads; on a device a chunk of frames at once (`device_motion`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ShapeError
from xcorr_app.gpu.field.run import halve_frames
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration import quality
from xcorr_app.registration.motion.device_motion import DeviceMotion, device_candidates
from xcorr_app.registration.motion.gauss_newton import (
    Fit,
    halved,
    levels_of,
    refined,
    smoothed,
    smoothing_for,
)
from xcorr_app.registration.motion.models import Model
from xcorr_app.registration.motion.result import MotionResult
from xcorr_app.registration.motion.smoothed_frames import sizes_of
from xcorr_app.registration.motion.start import Candidate, Starts, apart
from xcorr_app.registration.settings import DEFAULT_MAX_SIGMA
from xcorr_app.registration.stack.frames import Frames
from xcorr_app.registration.stack.passes import Pass, Progress
from xcorr_app.registration.stack.single_reference import SINGLE, read_reference
from xcorr_app.registration.warping.matrices import Matrix, about_corner

_AS_LONG_AS = 8
"""On a CPU measuring the motion of a frame takes as long as the shifts of so many."""
_FEWEST_PIXELS = 1 << 18
"""On a device a frame takes at least as much memory as one of so many pixels."""
_SMALLEST = 32
"""Pixels that the shorter side of a frame has at least."""
_AS_LIKELY = 0.85
"""Share of the best candidate's score from which another is refined too."""
_ALIKE = 1.05
"""Ratio of the scores of two motions below which either may be the true one."""
_TRIED = 3
"""Candidates that are refined at most."""
_NOTHING = 1e-3
"""Radians by which nothing turns."""
_WINDOWS = 1e4
"""Independent angles and shifts that are searched, for the score that chance reaches."""


def motion_of(
    frames: Frames,
    model: Model,
    reference: str | int | Array,
    *,
    max_sigma: float = DEFAULT_MAX_SIGMA,
    progress: Progress | None = None,
) -> MotionResult:
    """Measure frames that are read as needed."""
    if min(frames.shape) < _SMALLEST:
        raise ShapeError(f"frames are {frames.shape[0]} x {frames.shape[1]}: motion needs {_SMALLEST} pixels a side")
    known = ", ".join((*SINGLE, "previous", "mean", "template"))
    refusal = f"unknown reference {reference!r}: use {known}, a frame number or an image"
    image, _, described = read_reference(frames, reference, refusal)
    against = Against(image, model, max_sigma)

    def measure(numbers: Sequence[int], known: Callable[[int], list[Matrix]]) -> list[Found]:
        chunks = [frames.read(first, last) for first, last in _runs(numbers)]
        why = {t: words for chunk in chunks for t, words in chunk.unreadable.items()}
        xp = array_namespace(image)
        images = chunks[0].frames if len(chunks) == 1 else xp.concatenate([chunk.frames for chunk in chunks])
        seen = [i for i, t in enumerate(numbers) if t not in why]
        if why:
            images = images[xp.asarray(seen, dtype=np.intp)]
        found = [Found(flags=(quality.UNREADABLE,), unreadable=why.get(t)) for t in numbers]
        for i, one in zip(seen, against.measured(images, [known(numbers[i]) for i in seen]), strict=True):
            found[i] = one
        return found

    def over(numbers: Sequence[int], known: Callable[[int], list[Matrix]], told: Progress | None) -> list[Found]:
        def job(start: int, stop: int) -> list[Found]:
            return measure(numbers[start:stop], known)

        on_device, pixels = array_namespace(image) is not np, frames.shape[0] * frames.shape[1]
        walk = Pass(len(numbers), max(pixels, _FEWEST_PIXELS) if on_device else _AS_LONG_AS * pixels, on_device, told)
        return [one for some in walk.over("measure", job) for one in some]

    found = over(range(frames.count), lambda _: [], progress)
    unreadable = {t: one.unreadable for t, one in enumerate(found) if one.unreadable is not None}
    # What noise hides in a spectrum may be near what frames before and after it do.
    doubtful = [t for t in range(frames.count) if found[t].flags and found[t].can_improve and _neighbours(found, t)]
    again = over(doubtful, lambda t: _neighbours(found, t), None)
    for t, one in zip(doubtful, again, strict=True):
        if not one.flags or one.score > found[t].score:
            found[t] = one
    return motion_result(model, found, frames.shape, described, unreadable)


@dataclass(frozen=True)
class Found:
    """What was found of one frame; motions are about its middle."""

    motion: Matrix | None = None
    score: float = float("nan")
    covariance: NDArray[np.float64] | None = None
    overlap: float = 0.0
    flags: tuple[str, ...] = ()
    unreadable: str | None = None
    """Why it could not be read."""

    @property
    def can_improve(self) -> bool:
        """Whether there is anything that another start might find."""
        return not {quality.UNREADABLE, quality.FLAT} & set(self.flags)


class Against:
    """Measures frames against one image."""

    def __init__(self, image: Array, model: Model, max_sigma: float) -> None:
        prepared, _ = _prepared(image)
        clean = float(quality.clean_fraction(prepared[None])[0])
        self._smoothing = smoothing_for(clean)
        self._model, self._max_sigma = model, max_sigma
        self._levels = levels_of(self._smoothed(prepared), model)
        self._starts = Starts(self._levels[-1], model)
        self._is_flat = not float(prepared.std()) > 0
        self._of_corners = _changes_of_corners(model, self._levels[0].shape)
        self._device = None if array_namespace(image) is np else DeviceMotion(self._levels, model)

    def measured(self, frames: Array, known: list[list[Matrix]]) -> list[Found]:
        """Measure frames (T, Y, X); `known` are, for each, motions worth trying."""
        if self._device is None or not len(frames):
            return [self._alone(*each) for each in zip(frames, known, strict=True)]
        return self._together(frames, known)

    def _alone(self, frame: Array, known: list[Matrix]) -> Found:
        values, replaced = _prepared(frame)
        if self._is_flat or not float(values.std()) > 0:
            return _nothing_in(replaced)
        sizes = [self._smoothed(values)]
        while len(sizes) < len(self._levels):
            sizes.append(halved(sizes[-1]))
        tried = self._tried(self._starts.of(sizes[-1], known))
        return self._found([refined(self._levels, self._model, sizes, motion) for motion in tried], replaced)

    def _together(self, frames: Array, known: list[list[Matrix]]) -> list[Found]:
        """Frames (T, Y, X) on a device."""
        assert self._device is not None  # noqa: S101 - the caller asked before
        replaced, flat = _damage(frames)
        found = [_nothing_in(each) for each in replaced.tolist()]
        seen = np.flatnonzero(~flat)
        if self._is_flat or not seen.size:
            return found
        sizes = sizes_of(frames, self._smoothing, 2 if len(self._levels) > 1 else 1)
        while len(sizes) < len(self._levels):
            sizes.append(halve_frames(sizes[-1]))
        small = sizes[-1][array_namespace(frames).asarray(seen)]
        starts = device_candidates(self._starts, self._levels[-1].image, small, [known[t] for t in seen.tolist()])
        tried = [self._tried(candidates) for candidates in starts]
        numbers = np.repeat(seen, [len(motions) for motions in tried])
        fits = iter(self._device.refined(sizes, numbers, np.concatenate([np.stack(motions) for motions in tried])))
        for t, motions in zip(seen.tolist(), tried, strict=True):
            found[t] = self._found([next(fits) for _ in motions], bool(replaced[t]))
        return found

    def _tried(self, candidates: list[Candidate]) -> list[Matrix]:
        """Motions that are refined: the likely ones that are not the same."""
        likely = [one.motion for one in candidates if one.score >= _AS_LIKELY * candidates[0].score]
        tried: list[Matrix] = []
        for motion in likely:
            if all(apart(motion, other, self._levels[0].shape) for other in tried):
                tried.append(motion)
        return tried[:_TRIED]

    def _found(self, fits: list[Fit], replaced: bool) -> Found:
        """The best motion, and whether it may be another one."""
        flags = [quality.NON_FINITE] if replaced else []
        fits = sorted(fits, key=lambda fit: -fit.score if np.isfinite(fit.score) else np.inf)
        best = fits[0]
        if np.isnan(best.score):
            return Found(flags=(*flags, quality.EDGE))
        others = [fit for fit in fits[1:] if apart(fit.motion, best.motion, self._levels[0].shape)]
        if others and np.isfinite(others[0].score) and best.score < _ALIKE * others[0].score:
            flags.append(quality.AMBIGUOUS)
        if not best.settled or not best.definite or self._corner_error(best) > self._max_sigma:
            flags.append(quality.UNCERTAIN)
        elif best.score < self._by_chance(best.overlap):
            flags += [quality.LOW_SCORE, quality.UNCERTAIN]
        return Found(best.motion, best.score, best.covariance, best.overlap, tuple(flags))

    def _corner_error(self, fit: Fit) -> float:
        """Largest standard error, in pixels, of where a corner of the frame goes."""
        errors = np.einsum("ij,jk,ik->i", self._of_corners, fit.covariance, self._of_corners)
        return float(np.sqrt(errors.max(initial=0.0))) if np.isfinite(errors).all() else np.inf

    def _by_chance(self, overlap: float) -> float:
        """Score that unrelated noise hardly reaches for any motion that is looked at."""
        smeared = 1 + 4 * np.pi * self._smoothing**2
        pixels = overlap * self._levels[0].image.size / smeared
        return float((np.sqrt(2 * np.log(_WINDOWS)) + 3) / np.sqrt(max(pixels, 1.0)))

    def _smoothed(self, image: Array) -> Array:
        return smoothed(image, self._smoothing)


def _changes_of_corners(model: Model, shape: tuple[int, int]) -> NDArray[np.float64]:
    """By how much the numbers of a model (k) move each corner of a frame along rows, and along columns: (8, k)."""
    found = []
    for y, x in ((-0.5, -0.5), (-0.5, 0.5), (0.5, -0.5), (0.5, 0.5)):
        for gy, gx in ((1.0, 0.0), (0.0, 1.0)):
            place = (np.full((1, 1), value) for value in (gy, gx, y * shape[0], x * shape[1]))
            found.append([float(one[0, 0]) for one in model.slopes(*place)])
    return np.array(found)


def _nothing_in(replaced: bool) -> Found:
    return Found(flags=(quality.NON_FINITE, quality.FLAT) if replaced else (quality.FLAT,))


def _damage(frames: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which of the frames (T, Y, X) of a device hold NaN or infinity, and in which there is nothing to see."""
    xp = array_namespace(frames)
    if frames.dtype.kind != "f":
        return np.zeros(len(frames), bool), to_host(frames.max(axis=(1, 2)) == frames.min(axis=(1, 2)))
    finite = xp.isfinite(frames)
    low, high = xp.where(finite, frames, np.inf).min(axis=(1, 2)), xp.where(finite, frames, -np.inf).max(axis=(1, 2))
    return to_host(~finite.all(axis=(1, 2))), to_host(~(high > low))


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Ranges of consecutive numbers, in order."""
    edges = np.flatnonzero(np.diff(numbers) != 1) + 1
    return [(int(run[0]), int(run[-1]) + 1) for run in np.split(np.asarray(numbers), edges)]


def _prepared(image: Array) -> tuple[Array, bool]:
    """An image as float32 without its mean, NaN and infinity replaced by that; and whether there were any."""
    xp = array_namespace(image)
    values = image.astype(np.float64)
    finite = xp.isfinite(values)
    replaced = not bool(finite.all())
    count = max(int(finite.sum()), 1)
    mean = float(xp.where(finite, values, 0.0).sum()) / count
    return xp.where(finite, values - mean, 0.0).astype(np.float32), replaced


def _neighbours(found: list[Found], t: int) -> list[Matrix]:
    """Motions of the nearest frames before and after that are trusted."""
    known = []
    for numbers in (range(t - 1, -1, -1), range(t + 1, len(found))):
        motion = next((found[i].motion for i in numbers if not found[i].flags), None)
        # Frames that are not turned have been tried.
        if motion is not None and not np.allclose(motion[:2, :2], np.eye(2), atol=_NOTHING):
            known.append(motion)
    return known


def motion_result(
    model: Model, found: list[Found], shape: tuple[int, int], described: str, unreadable: dict[int, str]
) -> MotionResult:
    """Make a result of what was found of each frame, about the middles of frames."""
    nothing = np.full((3, 3), np.nan)
    motions = np.stack([nothing if one.motion is None else one.motion for one in found])
    sigma, sigma_angle = np.full((len(found), 2), np.nan), np.full(len(found), np.nan)
    for t, one in enumerate(found):
        if one.covariance is not None:
            deviations = np.sqrt(np.maximum(np.diag(one.covariance), 0.0))
            sigma[t] = deviations[:2]
            if not model.turns:
                sigma_angle[t] = 0.0
            elif model.name != "affine":
                sigma_angle[t] = np.degrees(deviations[2])
    return MotionResult(
        model=model.name,
        matrices=about_corner(motions, shape),
        score=np.array([one.score for one in found]),
        sigma=sigma,
        sigma_angle=sigma_angle,
        overlap=np.array([one.overlap for one in found]),
        flags=tuple(one.flags for one in found),
        shape=shape,
        reference=described,
        unreadable=unreadable,
    )
