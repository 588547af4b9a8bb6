"""Where refining starts: the likeliest of a few motions, looked at on small images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.plane import cross_correlate
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.runtime.arrays import Array, to_host
from xcorr_app.registration.motion.gauss_newton import Level
from xcorr_app.registration.motion.log_polar import spectra_of, turns_between
from xcorr_app.registration.motion.models import Model
from xcorr_app.registration.warping.matrices import Matrix, turned
from xcorr_app.registration.warping.warp import seen_through

_TURNS = 3
"""Peaks of the log-polar plane that are tried, each at two angles."""
MIN_OVERLAP = 0.3
"""Share of the small copy that a shift leaves at least."""


@dataclass(frozen=True)
class Candidate:
    """A motion at the size of the frames, and how well a small copy of the frame fits with it."""

    motion: Matrix
    score: float


class Starts:
    """Candidates of the frames of a stack against one reference, of which `level` is a small copy."""

    def __init__(self, level: Level, model: Model) -> None:
        self._level, self._model = level, model
        self._spectrum: Array | None = spectra_of(level.image[None]) if model.turns else None

    def of(self, frame: Array, known: list[Matrix]) -> list[Candidate]:
        """Candidates for a frame of that size, best first; `known` are motions that others have, to be tried too."""
        linear = [*self.turns_of(frame[None])[0], *(without_shift(motion) for motion in known)]
        return sorted((self._shifted(frame, motion) for motion in linear), key=lambda found: -found.score)

    def turns_of(self, frames: Array) -> list[list[Matrix]]:
        """Motions without a shift that frames (n, h, w) are likely to have."""
        found = [[np.eye(3)] for _ in range(len(frames))]
        if self._spectrum is not None:
            turns = turns_between(self._spectrum, spectra_of(frames), _TURNS, scales=self._model.scales)
            for motions, likely in zip(found, turns, strict=True):
                motions += [turned(angle + more, scale) for angle, scale in likely for more in (0.0, np.pi)]
        return found

    def _shifted(self, frame: Array, linear: Matrix) -> Candidate:
        """Add to a turn the shift at which the turned frame fits best."""
        seen = seen_through(frame, linear, order=1, mode="constant", cval=float(frame.mean()))
        image = self._level.image
        plane = to_host(
            cross_correlate(seen, image, max_shift=self.window, min_overlap=MIN_OVERLAP, check_finite=False)
        )
        plane = np.where(np.isfinite(plane), plane, -np.inf)
        at = int(plane.argmax())
        return Candidate(self.motions(linear[None], np.array([at]))[0], float(plane.flat[at]))

    @property
    def window(self) -> ShiftWindow:
        """Shifts that are looked at."""
        return ShiftWindow.symmetric(*(size // 2 for size in self._level.shape))

    def motions(self, linear: Matrix, at: NDArray[np.intp]) -> Matrix:
        """Motions (n, 3, 3) without a shift, each with that which lies at a place (n,) of the plane of all shifts."""
        window = self.window
        row, column = np.divmod(at, window.shape[1])
        moved = np.tile(np.eye(3), (len(at), 1, 1))
        moved[:, :2, 2] = np.stack([row + window.dy_min, column + window.dx_min], axis=1)
        found: Matrix = linear @ moved
        found[:, :2, 2] *= self._level.factor
        return found


def without_shift(motion: Matrix) -> Matrix:
    """The same motion, the middle of the frame staying where it is."""
    found = motion.copy()
    found[:2, 2] = 0.0
    return found


def apart(one: Matrix, other: Matrix, shape: tuple[int, int]) -> bool:
    """Whether two motions take a corner of a frame to places farther apart than a few hundredths of its side."""
    corners = np.array([[y, x, 1.0] for y in (-0.5, 0.5) for x in (-0.5, 0.5)]) * [*shape, 1.0]
    return bool(np.abs(corners @ (one - other).T).max() > max(2.0, 0.03 * max(shape)))
