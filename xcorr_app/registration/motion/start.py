"""Where refining starts: the likeliest of a few motions, looked at on small images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from xcorr_app.correlation.plane import cross_correlate
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.runtime.arrays import Array, to_host
from xcorr_app.registration.motion.gauss_newton import Level
from xcorr_app.registration.motion.log_polar import Spectrum, spectrum_of, turns_between
from xcorr_app.registration.motion.models import Matrix, Model, turned
from xcorr_app.registration.motion.warp import seen_through

_TURNS = 3
"""Peaks of the log-polar plane that are tried, each at two angles."""


@dataclass(frozen=True)
class Candidate:
    """A motion at the size of the frames, and how well a small copy of the frame fits with it."""

    motion: Matrix
    score: float


class Starts:
    """Candidates of the frames of a stack against one reference, of which `level` is a small copy."""

    def __init__(self, level: Level, model: Model) -> None:
        self._level, self._model = level, model
        self._spectrum: Spectrum | None = spectrum_of(level.image) if model.turns else None

    def of(self, frame: Array, known: list[Matrix]) -> list[Candidate]:
        """Candidates for a frame of that size, best first; `known` are motions that others have, to be tried too."""
        turns = [(0.0, 1.0)]
        if self._spectrum is not None:
            for angle, scale in turns_between(self._spectrum, spectrum_of(frame), _TURNS, scales=self._model.scales):
                turns += [(angle, scale), (angle + np.pi, scale)]
        linear = [turned(angle, scale) for angle, scale in turns]
        linear += [_linear(motion) for motion in known]
        return sorted((self._shifted(frame, motion) for motion in linear), key=lambda found: -found.score)

    def _shifted(self, frame: Array, linear: Matrix) -> Candidate:
        """Add to a turn the shift at which the turned frame fits best."""
        seen = seen_through(frame, linear, order=1, mode="constant", cval=float(frame.mean()))
        reach = [int(size * 0.5) for size in frame.shape]
        window = ShiftWindow.symmetric(*reach)
        plane = to_host(cross_correlate(seen, self._level.image, max_shift=window, min_overlap=0.3, check_finite=False))
        plane = np.where(np.isfinite(plane), plane, -np.inf)
        peak = np.unravel_index(int(plane.argmax()), plane.shape)
        moved = np.eye(3)
        moved[:2, 2] = (int(peak[0]) + window.dy_min, int(peak[1]) + window.dx_min)
        motion = linear @ moved
        motion[:2, 2] *= self._level.factor
        return Candidate(motion, float(plane[peak]))


def _linear(motion: Matrix) -> Matrix:
    found = motion.copy()
    found[:2, 2] = 0.0
    return found


def apart(one: Matrix, other: Matrix, shape: tuple[int, int]) -> bool:
    """Whether two motions take a corner of a frame to places farther apart than a few hundredths of its side."""
    corners = np.array([[y, x, 1.0] for y in (-0.5, 0.5) for x in (-0.5, 0.5)]) * [*shape, 1.0]
    return bool(np.abs(corners @ (one - other).T).max() > max(2.0, 0.03 * max(shape)))
