"""Motion of whole frames: the likeliest of a few starts refined, frame by frame, and what can be said about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ShapeError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration import quality
from xcorr_app.registration.frames import Frames
from xcorr_app.registration.motion.gauss_newton import (
    Fit,
    halved,
    levels_of,
    refined,
    smoothed,
    smoothing_for,
)
from xcorr_app.registration.motion.models import Matrix, Model
from xcorr_app.registration.motion.result import MotionResult
from xcorr_app.registration.motion.start import Candidate, Starts, apart
from xcorr_app.registration.motion.warp import about_corner
from xcorr_app.registration.passes import Pass, Progress
from xcorr_app.registration.settings import DEFAULT_MAX_SIGMA
from xcorr_app.registration.single_reference import SINGLE, read_reference

_AS_LONG_AS = 8
"""Measuring the motion of a frame takes as long as the shifts of so many."""
_SMALLEST = 32
"""Pixels that the shorter side of a frame has at least."""
_AS_LIKELY = 0.85
"""Share of the best candidate's score from which another is refined too."""
_ALIKE = 1.05
"""Ratio of the scores of two motions below which either may be the true one."""
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
    refusal = f"unknown reference {reference!r}: use {', '.join(SINGLE)}, a frame number or an image"
    image, _, described = read_reference(frames, reference, refusal)
    against = _Against(image, model, max_sigma)

    def measure(t: int, known: list[Matrix]) -> _Found:
        chunk = frames.read(t, t + 1)
        if chunk.unreadable:
            return _Found(flags=(quality.UNREADABLE,), unreadable=chunk.unreadable[t])
        return against.measured(chunk.frames[0], known)

    def over(numbers: Sequence[int], known: Callable[[int], list[Matrix]], told: Progress | None) -> list[_Found]:
        def job(start: int, stop: int) -> list[_Found]:
            return [measure(t, known(t)) for t in numbers[start:stop]]

        on_device = array_namespace(image) is not np
        walk = Pass(len(numbers), _AS_LONG_AS * frames.shape[0] * frames.shape[1], on_device, told)
        return [one for some in walk.over("measure", job, small=True) for one in some]

    found = over(range(frames.count), lambda _: [], progress)
    unreadable = {t: one.unreadable for t, one in enumerate(found) if one.unreadable is not None}
    # What noise hides in a spectrum may be near what frames before and after it do.
    doubtful = [t for t in range(frames.count) if found[t].flags and found[t].can_improve]
    again = over(doubtful, lambda t: _neighbours(found, t), None)
    for t, one in zip(doubtful, again, strict=True):
        if not one.flags or one.score > found[t].score:
            found[t] = one
    return _result(model, found, frames.shape, described, unreadable)


@dataclass(frozen=True)
class _Found:
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
        return not {quality.UNREADABLE, quality.FLAT} & set(self.flags)


class _Against:
    """Measures frames against one image."""

    def __init__(self, image: Array, model: Model, max_sigma: float) -> None:
        prepared, _ = _prepared(image)
        clean = float(quality.clean_fraction(prepared[None])[0])
        self._smoothing = smoothing_for(clean)
        self._model, self._max_sigma = model, max_sigma
        self._levels = levels_of(self._smoothed(prepared), model)
        self._starts = Starts(self._levels[-1], model)
        self._is_flat = not float(prepared.std()) > 0

    def measured(self, frame: Array, known: list[Matrix]) -> _Found:
        """Measure a frame; `known` are motions worth trying."""
        values, replaced = _prepared(frame)
        flags = [quality.NON_FINITE] if replaced else []
        if self._is_flat or not float(values.std()) > 0:
            return _Found(flags=(*flags, quality.FLAT))
        sizes = [self._smoothed(values)]
        while len(sizes) < len(self._levels):
            sizes.append(halved(sizes[-1]))
        best, rival = self._best(sizes, self._starts.of(sizes[-1], known))
        if np.isnan(best.score):
            return _Found(flags=(*flags, quality.EDGE))
        if rival is not None and best.score < _ALIKE * rival.score:
            flags.append(quality.AMBIGUOUS)
        if not best.settled or not best.definite or self._corner_error(best) > self._max_sigma:
            flags.append(quality.UNCERTAIN)
        elif best.score < self._by_chance(best.overlap):
            flags += [quality.LOW_SCORE, quality.UNCERTAIN]
        return _Found(best.motion, best.score, best.covariance, best.overlap, tuple(flags))

    def _best(self, sizes: list[Array], candidates: list[Candidate]) -> tuple[Fit, Fit | None]:
        """The best motion, and the best of those that are another one and might have been it."""
        likely = [one for one in candidates if one.score >= _AS_LIKELY * candidates[0].score]
        tried: list[Candidate] = []
        for one in likely:
            if all(apart(one.motion, other.motion, self._levels[0].shape) for other in tried):
                tried.append(one)
        fits = [refined(self._levels, self._model, sizes, one.motion) for one in tried[:3]]
        fits = sorted(fits, key=lambda fit: -fit.score if np.isfinite(fit.score) else np.inf)
        others = [fit for fit in fits[1:] if apart(fit.motion, fits[0].motion, self._levels[0].shape)]
        return fits[0], others[0] if others and np.isfinite(others[0].score) else None

    def _corner_error(self, fit: Fit) -> float:
        """Largest standard error, in pixels, of where a corner of the frame goes."""
        errors = [0.0]
        height, width = self._levels[0].shape
        for y, x in ((-0.5, -0.5), (-0.5, 0.5), (0.5, -0.5), (0.5, 0.5)):
            for gy, gx in ((1.0, 0.0), (0.0, 1.0)):
                place = (np.full((1, 1), value) for value in (gy, gx, y * height, x * width))
                change = np.array([float(one.ravel()[0]) for one in self._model.slopes(*place)])
                errors.append(float(change @ fit.covariance @ change))
        return float(np.sqrt(max(errors))) if np.isfinite(errors).all() else np.inf

    def _by_chance(self, overlap: float) -> float:
        """Score that unrelated noise hardly reaches for any motion that is looked at."""
        smeared = 1 + 4 * np.pi * self._smoothing**2
        pixels = overlap * self._levels[0].image.size / smeared
        return float((np.sqrt(2 * np.log(_WINDOWS)) + 3) / np.sqrt(max(pixels, 1.0)))

    def _smoothed(self, image: Array) -> Array:
        return smoothed(image, self._smoothing)


def _prepared(image: Array) -> tuple[Array, bool]:
    """An image as float32 without its mean, NaN and infinity replaced by that; and whether there were any."""
    xp = array_namespace(image)
    values = image.astype(np.float64)
    finite = xp.isfinite(values)
    replaced = not bool(finite.all())
    count = max(int(finite.sum()), 1)
    mean = float(xp.where(finite, values, 0.0).sum()) / count
    return xp.where(finite, values - mean, 0.0).astype(np.float32), replaced


def _neighbours(found: list[_Found], t: int) -> list[Matrix]:
    """Motions of the nearest frames before and after that are trusted."""
    known = []
    for numbers in (range(t - 1, -1, -1), range(t + 1, len(found))):
        motion = next((found[i].motion for i in numbers if not found[i].flags), None)
        if motion is not None:
            known.append(motion)
    return known


def _result(
    model: Model, found: list[_Found], shape: tuple[int, int], described: str, unreadable: dict[int, str]
) -> MotionResult:
    nothing = np.full((3, 3), np.nan)
    middle = [nothing if one.motion is None else about_corner(one.motion, shape) for one in found]
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
        matrices=np.stack(middle),
        score=np.array([one.score for one in found]),
        sigma=sigma,
        sigma_angle=sigma_angle,
        overlap=np.array([one.overlap for one in found]),
        flags=tuple(one.flags for one in found),
        shape=shape,
        reference=described,
        unreadable=unreadable,
    )
