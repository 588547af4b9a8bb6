"""Matching on a device without planes: frames as stored in, 29 numbers a frame out.

The kernels read frames as they are and convert them on load; the reference has zero mean, so the mean of a frame drops
out of the normalised correlation and only its rounding stays. The window is not computed beyond its edge, as for the
other engines: a frame whose peak lies there, or whose values would round badly, is left to them.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.normalize import least_overlap
from xcorr_app.correlation.peak_finder import PeakFinder
from xcorr_app.correlation.subpixel import refine
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.common_overlap import common_overlap
from xcorr_app.gpu.peaks.records import PeakRecords
from xcorr_app.gpu.peaks.summed_area import tables_for
from xcorr_app.gpu.runtime.arrays import Array, to_host
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.runtime.types import INPUT_TYPES
from xcorr_app.gpu.tensor.sums import FP16_ERROR
from xcorr_app.registration.match import Match
from xcorr_app.registration.quality import AMBIGUOUS_RATIO
from xcorr_app.registration.settings import Settings

_BYTES_OF_TABLES = 256 << 20
"""Summed-area tables of frames made at a time where those of all would take more than a search keeps."""
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


@functools.lru_cache(maxsize=4)
def _finder(_device: int, problem: Problem, least: int, options: KernelOptions | None, engine: str) -> PeakFinder:
    """Prepared once: that takes longer than hundreds of frames."""
    return PeakFinder(problem, least_overlap=least, options=options, engine=engine)


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
        self._problem = problem = Problem(shape, shape, first, window.shape)
        least = least_overlap(shape, shape, settings.min_overlap)
        self._finder = _finder(current_device(), problem, least, settings.kernel_options, engine)
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
        mean, power = moments[:, 0] / self._pixels, moments[:, 1] / self._pixels
        near = self._on_common_overlap(found.around[:, 1:4, 1:4], references, frames, peak, (tables, whole), xp)
        offset, height = refine(to_host(near), self._settings.of_peak, self._settings.upsample)
        valid = np.isfinite(found.value)
        shift = np.where(valid[:, None], peak + offset, np.nan)
        score = np.where(valid, np.clip(height, -1.0, 1.0), np.nan)
        positive = found.rival > 0
        ratio = np.where(positive, found.value / np.where(positive, found.rival, 1.0), np.inf)
        ratio = np.where(valid, ratio, np.nan)
        inside = np.zeros(peak.shape[0], dtype=bool)
        unknown = np.full((2, peak.shape[0]), np.nan)
        match = Match(peak, shift, score, ratio, inside, found.around, found.around[:, 1:4, 1:4], *unknown)
        variance = power - mean * mean
        lowest, highest = _PLAIN_RANGE
        plain = (power >= lowest**2) & (power <= highest**2) & (mean * mean <= _LARGEST_OFFSET**2 * variance)
        return Found(match, np.flatnonzero(undecided | self._near_edge(found) | ~plain), variance)

    def _on_common_overlap(
        self,
        near: NDArray[np.float64],
        references: Array,
        frames: Array,
        peak: NDArray[np.intp],
        tables: tuple[Array, Array],
        xp: Any,
    ) -> Array:
        """Scores (n, 3, 3) around peaks, of the parts that overlap there; `tables` are those of both sides."""
        lefts, count = references.shape[0], frames.shape[0]
        of_left, of_right = tables
        makes = tables_for(self._problem)
        scores = xp.asarray(near)
        if of_right.shape[1:3] == makes.sizes[2:]:
            problem = replace(self._problem, lefts=lefts, rights=count, rights_per_left=count // lefts)
            return common_overlap(scores, references, frames, peak, problem, (makes, of_left, of_right))
        # Where tables of all frames take too much memory, those of a few at a time.
        at_once = max(1, _BYTES_OF_TABLES // (16 * makes.cells[1]))
        for start in range(0, count, at_once):
            part = slice(start, min(start + at_once, count))
            mine = part if lefts > 1 else slice(0, 1)
            these = part.stop - part.start
            problem = replace(self._problem, lefts=these if lefts > 1 else 1, rights=these)
            problem = replace(problem, rights_per_left=1 if lefts > 1 else these)
            of_both = makes, of_left[mine], makes.right(frames[part])
            scores[part] = common_overlap(scores[part], references[mine], frames[part], peak[part], problem, of_both)
        return scores

    def _near_edge(self, found: PeakRecords) -> NDArray[np.bool_]:
        rows, columns = self._window.shape
        near: NDArray[np.bool_] = (
            (found.row < _FROM_EDGE)
            | (found.row >= rows - _FROM_EDGE)
            | (found.column < _FROM_EDGE)
            | (found.column >= columns - _FROM_EDGE)
        )
        return near
