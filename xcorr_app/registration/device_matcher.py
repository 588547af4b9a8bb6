"""Matching on a device without planes: frames as stored in, 29 numbers a frame out.

The kernels read frames as they are and convert them on load; the reference has zero mean, so the mean of a frame drops
out of the normalised correlation and only its rounding stays. The window is not computed beyond its edge, as for the
other engines: a frame whose peak lies there, or whose values would round badly, is left to them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.normalize import least_overlap
from xcorr_app.correlation.peak_finder import PeakFinder
from xcorr_app.correlation.subpixel import FLAT, LEAST_LOGARITHM
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.common_overlap import common_overlap
from xcorr_app.gpu.peaks.frame_peaks import OfReferences, Rules, frame_peaks, peak_places
from xcorr_app.gpu.peaks.summed_area import tables_for
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.gpu.runtime.beside import Beside, so_far
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.runtime.types import INPUT_TYPES
from xcorr_app.gpu.tensor.sums import FP16_ERROR
from xcorr_app.registration.match import Match
from xcorr_app.registration.quality import AMBIGUOUS_RATIO
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.uncertainty import AT_EDGES, FEWEST_TILES, PeakShapes, ReferenceSlopes

_BYTES_OF_TABLES = 256 << 20
"""Summed-area tables of frames made at a time where those of all would take more than a search keeps."""
_FROM_EDGE = 2
"""Shifts that the 5 x 5 values around a peak reach to each side."""
_LARGEST_OFFSET = 1e3
"""Mean over standard deviation up to which products with unshifted values lose less than 1e-5 of the correlation."""
_DEVICE_NOISE_PERIOD = 32
"""Rows of which four are looked at for noise: frames that need no planes have little."""
_SLOPES = 1
"""Lane of streams beside which the frames themselves may be checked."""
_TIE = 1e-6
"""Share of a peak's height by which a rival that is equal may differ in single precision."""
_PLAIN_RANGE = (1e-12, 1e12)
"""Root mean squares whose products and squares stay far inside single precision."""


@dataclass(frozen=True)
class Found:
    """What was found of n frames."""

    match: Match
    others: NDArray[np.intp]
    """Frames to be matched by other means."""
    clean: NDArray[np.float64]
    """(n,) fraction of the variance that is not white noise."""
    shapes: PeakShapes


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
        first = (window.dy_min, window.dx_min)
        self._problem = problem = Problem(shape, shape, first, window.shape)
        least = least_overlap(shape, shape, settings.min_overlap)
        self._finder = _finder(current_device(), problem, least, settings.kernel_options, engine)
        self._rules = Rules(
            _TIE,
            AMBIGUOUS_RATIO,
            FP16_ERROR if engine == "tensor" else 0.0,
            _FROM_EDGE,
            _LARGEST_OFFSET,
            *_PLAIN_RANGE,
            LEAST_LOGARITHM,
            FLAT,
            AT_EDGES,
            FEWEST_TILES,
        )

    @staticmethod
    def reads(frames: Array) -> bool:
        """Whether the kernels take frames of this type."""
        return str(frames.dtype) in INPUT_TYPES

    def tables(self, references: Array) -> Array:
        """What the reference images (1 or n, h, w), of zero mean, contribute to the normalisation."""
        return self._finder.left_tables(references)

    def match(
        self,
        references: Array,
        tables: Array,
        slopes_of: Callable[[], ReferenceSlopes],
        frames: Array,
        values: Array,
        meanwhile: Callable[[], None],
        xp: Any,
    ) -> Found:
        """Match frames (n, h, w) with one reference or each with its own.

        `values` are the frames as they count for standard errors; the references' slopes are made while the device
        searches for the peaks, and what the host has to do `meanwhile` is done then. It is waited for once.
        """
        before = so_far()
        frames, count = xp.ascontiguousarray(frames), frames.shape[0]
        each, window = references.shape[0] > 1, self._window
        records, whole = self._finder.find(references, frames, 1 if each else count, tables)
        first = window.dy_min, window.dx_min
        places, near = peak_places(records, first)
        near = self._on_common_overlap(near, references, frames, places, (tables, whole))
        slopes = Beside(slopes_of, before, _SLOPES).result()
        of_references = OfReferences(slopes.factors, slopes.sums, slopes.noise, slopes.tiles.grid)
        started = frame_peaks(
            (records, places, near, whole),
            frames,
            values,
            of_references,
            (*first, *window.shape),
            _DEVICE_NOISE_PERIOD,
            self._settings.of_peak,
            self._rules,
        )
        meanwhile()
        found = started()
        around, unknown = found.around, np.full((2, count), np.nan)
        inside = np.zeros(count, dtype=bool)
        match = Match(found.peak, found.shift, found.score, found.ratio, inside, around, around[:, 1:4, 1:4], *unknown)
        shapes = PeakShapes(found.scatter, found.hessian, found.height, found.quartic)
        return Found(match, np.flatnonzero(found.is_open), found.clean, shapes)

    def _on_common_overlap(
        self,
        scores: Array,
        references: Array,
        frames: Array,
        peak: Array,
        tables: tuple[Array, Array],
    ) -> Array:
        """Scores (n, 3, 3) around peaks, of the parts that overlap there; `tables` are those of both sides."""
        lefts, count = references.shape[0], frames.shape[0]
        of_left, of_right = tables
        makes = tables_for(self._problem)
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
