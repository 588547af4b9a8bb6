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

from xcorr_app.correlation.normalize import min_overlap_pixels
from xcorr_app.correlation.peak_finder import PeakFinder
from xcorr_app.correlation.subpixel import FLAT, MIN_LOGARITHM
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.common_overlap import common_overlap
from xcorr_app.gpu.peaks.frame_peaks import OfReferences, Rules, frame_noise, frame_peaks, peak_places, sums_are_exact
from xcorr_app.gpu.peaks.summed_area import tables_for
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.gpu.runtime.download import Download
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of
from xcorr_app.gpu.tensor.sums import FP16_ERROR
from xcorr_app.registration.measuring.match import Comparison, Match
from xcorr_app.registration.quality import AMBIGUOUS_RATIO, PERIOD_OF_QUIET
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.standard_error.peak_shapes import PeakShapes
from xcorr_app.registration.standard_error.reference_slopes import ReferenceSlopes
from xcorr_app.registration.standard_error.uncertainty import AT_EDGES, MIN_TILES

_BYTES_OF_TABLES = 256 << 20
"""Summed-area tables of frames made at a time where those of all would take more than a search keeps."""
_FROM_EDGE = 2
"""Shifts that the 5 x 5 values around a peak reach to each side."""
_MAX_OFFSET = 1e3
"""Mean over standard deviation up to which products with unshifted values lose less than 1e-5 of the correlation."""
_TIE = 1e-6
"""Share of a peak's height by which a rival that is equal may differ in single precision."""
_PLAIN_RANGE = (1e-12, 1e12)
"""Root mean squares whose products and squares stay far inside single precision."""


@dataclass(frozen=True)
class PendingFrames:
    """What of frames a device was told to compute before it knew what they are compared with."""

    frames: Array
    tables: Array
    """None where they are made later."""
    noise: Any


@functools.lru_cache(maxsize=16)
def _prepared(
    _device: int,
    shape: tuple[int, int],
    window: ShiftWindow,
    min_overlap: float,
    options: KernelOptions | None,
    engine: str,
    canonical_batch: tuple[int, int] | None,
) -> tuple[Problem, PeakFinder, Rules]:
    """Prepared once: that takes longer than hundreds of frames."""
    problem = Problem(shape, shape, (window.dy_min, window.dx_min), window.shape)
    least = min_overlap_pixels(shape, shape, min_overlap)
    rules = Rules(
        _TIE,
        AMBIGUOUS_RATIO,
        FP16_ERROR if engine == "tensor" else 0.0,
        _FROM_EDGE,
        _MAX_OFFSET,
        *_PLAIN_RANGE,
        MIN_LOGARITHM,
        FLAT,
        AT_EDGES,
        MIN_TILES,
    )
    finder = PeakFinder(
        problem, min_overlap_pixels=least, options=options, engine=engine, canonical_batch=canonical_batch
    )
    return problem, finder, rules


@functools.lru_cache(maxsize=64)
def _of_batch(problem: Problem, lefts: int, rights: int) -> Problem:
    return replace(problem, lefts=lefts, rights=rights, rights_per_left=rights // lefts)


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
    canonical_batch : (int, int), optional
        Numbers of references and frames for which kernels are chosen, however many there are.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        window: ShiftWindow,
        settings: Settings,
        *,
        engine: str = "direct",
        canonical_batch: tuple[int, int] | None = None,
    ) -> None:
        self._window, self._settings, self._canonical_batch = window, settings, canonical_batch
        how = settings.min_overlap, settings.kernel_options, engine, canonical_batch
        self._problem, self._finder, self._rules = _prepared(current_device(), shape, window, *how)

    @staticmethod
    def reads(frames: Array) -> bool:
        """Whether the kernels take frames of this type."""
        return name_of(frames.dtype) in INPUT_TYPES

    @staticmethod
    def tells_flat(frames: Array) -> bool:
        """Whether comparing frames (n, h, w) tells which of them have one value."""
        return sums_are_exact(frames.shape[1] * frames.shape[2], frames.dtype)

    def tables(self, references: Array) -> Array:
        """What the reference images (1 or n, h, w), of zero mean, contribute to the normalisation."""
        return self._finder.left_tables(references)

    def begin(self, frames: Array, references: int, xp: Any) -> PendingFrames:
        """Begin with what is asked of frames (n, h, w) whatever they are compared with: 1 reference or n."""
        frames = xp.ascontiguousarray(frames)
        noise = frame_noise(frames, PERIOD_OF_QUIET)
        per_reference = frames.shape[0] // references
        return PendingFrames(frames, self._finder.right_tables(references, frames, per_reference, "float32"), noise)

    def match(
        self,
        references: Array,
        tables: Array,
        slopes_of: tuple[Callable[[], None], Callable[[], ReferenceSlopes]],
        pending: PendingFrames,
        values: Array,
    ) -> Comparison:
        """Match frames (n, h, w) with one reference or each with its own.

        `pending` is what :meth:`begin` made of them, `values` are the frames as they count for standard errors. The
        references' slopes are begun with, then made while the device searches for the peaks. It is waited for once.
        """
        frames, count = pending.frames, pending.frames.shape[0]
        each, window = references.shape[0] > 1, self._window
        # Before the search, so that the host need not wait for that to know them.
        slopes_of[0]()
        records, whole = self._finder.find(references, frames, 1 if each else count, tables, pending.tables)
        first = window.dy_min, window.dx_min
        places, near = peak_places(records, first)
        near = self._on_common_overlap(near, references, frames, places, (tables, whole))
        slopes = slopes_of[1]()
        bends = Download(slopes.sums[8:12:3])
        of_references = OfReferences(slopes.factors, slopes.sums, slopes.noise, slopes.tiles.grid)
        _, finished = frame_peaks(
            (records, places, near, whole),
            pending.noise,
            frames,
            values,
            of_references,
            (*first, *window.shape),
            PERIOD_OF_QUIET,
            self._settings.of_peak,
            self._rules,
        )
        found = finished()
        around, unknown, inside = found.around, np.full((2, count), np.nan), np.zeros(count, dtype=bool)
        match = Match(found.peak, found.shift, found.score, found.ratio, inside, around, around[:, 1:4, 1:4], *unknown)
        widening, freedom = slopes.few_tiles(bends())
        of_tiles = found.scatter * widening[:, None, None], found.hessian, found.height, found.quartic
        shapes = PeakShapes(*of_tiles, np.resize(freedom, count), np.full((count, 2), np.nan))
        is_open = found.is_open if found.flat is None else found.is_open & ~found.flat
        return Comparison(match, found.clean, values, shapes, found.flat, np.flatnonzero(is_open))

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
            problem = _of_batch(self._problem, lefts, count)
            return common_overlap(scores, references, frames, peak, problem, (makes, of_left, of_right))
        # Where tables of all frames take too much memory, those of a few at a time.
        at_once = max(1, _BYTES_OF_TABLES // (16 * makes.cells[1]))
        for start in range(0, count, at_once):
            part = slice(start, min(start + at_once, count))
            mine = part if lefts > 1 else slice(0, 1)
            these = part.stop - part.start
            problem = _of_batch(self._problem, these if lefts > 1 else 1, these)
            of_both = (
                makes,
                of_left[mine],
                makes.right(frames[part], self._canonical_batch[1] if self._canonical_batch else 0),
            )
            scores[part] = common_overlap(scores[part], references[mine], frames[part], peak[part], problem, of_both)
        return scores
