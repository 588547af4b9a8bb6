"""Matching on a device without planes: frames as stored in, 29 numbers a frame out.

The kernels read frames as they are and convert them on load; the reference has zero mean, so the mean of a frame drops
out of the normalised correlation and only its rounding stays. The window is not computed beyond its edge, as for the
other engines: a frame whose peak lies there, or whose values would round badly, is left to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.normalize import least_overlap
from xcorr_app.correlation.peak_finder import PeakFinder
from xcorr_app.correlation.subpixel import refine
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.records import PeakRecords
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.gpu.runtime.types import INPUT_TYPES
from xcorr_app.gpu.tensor.sums import FP16_ERROR
from xcorr_app.registration.match import Match
from xcorr_app.registration.quality import AMBIGUOUS_RATIO
from xcorr_app.registration.settings import Settings

_FROM_EDGE = 2
"""Shifts that the 5 x 5 values around a peak reach to each side."""
_LARGEST_OFFSET = 1e3
"""Mean over standard deviation up to which products with unshifted values lose less than 1e-5 of the correlation."""
_TIE = 1e-6
"""Share of a peak's height by which a rival that is equal may differ in single precision."""
_PLAIN_RANGE = (1e-12, 1e12)
"""Root mean squares whose products and squares stay far inside single precision."""


@dataclass(frozen=True)
class Found:
    """What one launch found of n frames."""

    match: Match
    others: NDArray[np.intp]
    """Frames to be matched by other means."""
    variance: NDArray[np.float64]
    """(n,) of the frames."""


class DeviceMatcher:
    """Compares frames with a reference within a window of shifts, on the current device.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns of the measured images.
    window : ShiftWindow
    settings : Settings
        That do not need planes: see `why_planes`.
    engine : str
        ``"direct"`` or ``"tensor"``. What fp16 cannot decide is left to other means: a peak whose neighbour is
        higher in single precision, or that a rival comes near to, and whether a rival makes it ambiguous.
    """

    def __init__(
        self, shape: tuple[int, int], window: ShiftWindow, settings: Settings, *, engine: str = "direct"
    ) -> None:
        self._window, self._settings = window, settings
        self._pixels = shape[0] * shape[1]
        first = (window.dy_min, window.dx_min)
        self._finder = PeakFinder(
            Problem(shape, shape, first, window.shape),
            least_overlap=least_overlap(shape, shape, settings.min_overlap),
            options=settings.kernel_options,
            engine=engine,
        )
        self._tensor = engine == "tensor"

    @staticmethod
    def reads(frames: Array) -> bool:
        """Whether the kernels take frames of this type."""
        return str(frames.dtype) in INPUT_TYPES

    def tables(self, references: Array) -> Array:
        """What the reference images (1 or n, h, w), of zero mean, contribute to the normalisation."""
        return self._finder.left_tables(references)

    def match(self, references: Array, tables: Array, frames: Array, xp: Any) -> Found:
        """Match frames (n, h, w) with one reference or each with its own."""
        frames = xp.ascontiguousarray(frames)
        each = references.shape[0] > 1
        records, whole = self._finder.find(references, frames, 1 if each else frames.shape[0], tables)
        found, moments = PeakRecords.of(records), whole[:, -1, -1].get()
        undecided = found.row < 0
        # Of equal peaks the one of the smallest shift counts, not the one found first.
        undecided |= found.rival >= found.value - _TIE * np.abs(found.value)
        if self._tensor:
            found = found.decided()
            undecided |= found.rival > found.value - 2 * FP16_ERROR
            # The rival is known in fp16, and must not decide whether a peak is ambiguous.
            undecided |= np.abs(found.value - AMBIGUOUS_RATIO * found.rival) < AMBIGUOUS_RATIO * FP16_ERROR
        peak = np.stack([found.row + self._window.dy_min, found.column + self._window.dx_min], axis=1)
        offset, height = refine(found.around[:, 1:4, 1:4], self._settings.subpixel, self._settings.upsample)
        valid = np.isfinite(found.value)
        shift = np.where(valid[:, None], peak + offset, np.nan)
        score = np.where(valid, np.clip(height, -1.0, 1.0), np.nan)
        positive = found.rival > 0
        ratio = np.where(positive, found.value / np.where(positive, found.rival, 1.0), np.inf)
        ratio = np.where(valid, ratio, np.nan)
        inside = np.zeros(peak.shape[0], dtype=bool)
        unknown = np.full((2, peak.shape[0]), np.nan)
        match = Match(peak, shift, score, ratio, inside, found.around, found.around[:, 1:4, 1:4], *unknown)
        mean, power = moments[:, 0] / self._pixels, moments[:, 1] / self._pixels
        variance = power - mean * mean
        lowest, highest = _PLAIN_RANGE
        plain = (power >= lowest**2) & (power <= highest**2) & (mean * mean <= _LARGEST_OFFSET**2 * variance)
        return Found(match, np.flatnonzero(undecided | self._near_edge(found) | ~plain), variance)

    def _near_edge(self, found: PeakRecords) -> NDArray[np.bool_]:
        rows, columns = self._window.shape
        near: NDArray[np.bool_] = (
            (found.row < _FROM_EDGE)
            | (found.row >= rows - _FROM_EDGE)
            | (found.column < _FROM_EDGE)
            | (found.column >= columns - _FROM_EDGE)
        )
        return near
