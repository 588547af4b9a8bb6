"""How the peaks of a batch of pairs are found without their planes being kept: the choice, and the two ways.

By kernels that sum, score and search (:mod:`xcorr_app.correlation.peak_finder`), which mark the pairs that they cannot
decide; or by planes of a few pairs at a time, which are searched and forgotten.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.choice import decide_peaks, decide_planes
from xcorr_app.correlation.peak_finder import PeakFinder
from xcorr_app.correlation.plane_peaks import PlanePeaks, lacks_neighbours, peaks_of_planes
from xcorr_app.correlation.problem import window_of
from xcorr_app.correlation.standardize import standardize
from xcorr_app.correlation.subpixel import radius_of, refine
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.decision import Decision
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.records import PeakRecords
from xcorr_app.gpu.peaks.search import finds_peaks
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.memory import with_second_try
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.runtime.types import INPUT_TYPES
from xcorr_app.gpu.tensor.sums import FP16_ERROR

PlanesOf = Callable[[Array, Array], Array]
"""Planes (N, M, ny, nx) from lefts (N or 1, 1, H, W) and rights (1 or N, M, H', W')."""

_ELEMENTS_AT_ONCE = 2**22
"""Of planes, or of padded matrices, that are in work together on a CPU; a device takes more to be busy."""
_ON_DEVICE = 16
_ELEMENTS_COPIED = 2**27
"""Of matrices that are standardised at a time for the kernels that find peaks."""
_TIE = 1e-6
"""Share of a peak's height by which a rival that is equal may differ in single precision."""
_UPSAMPLE = 100
"""Grid points per pixel of the sub-pixel method ``dft``."""


def decide_shifts(
    problem: Problem,
    dtypes: tuple[str, str],
    normalization: str,
    *,
    engine: str,
    options: KernelOptions | None,
    subpixel: str,
    limits: DeviceLimits | None,
) -> tuple[Decision, bool]:
    """Decide what finds the peaks of matrices that an engine is handed as of these types; `limits` None is the CPU.

    Also return whether that is a `PeakFinder`; otherwise planes are made, a few pairs at a time.
    """
    if normalization == "phase":
        return Decision("fft", reason="phase correlation is computed by the FFT alone"), False
    how: Any = {"dtypes": dtypes, "engine": engine, "options": options, "limits": limits}
    if limits is None:
        return decide_planes(problem, **how), False
    needed, normalize = _why_planes(problem, dtypes, options, subpixel, limits), normalization == "zncc"
    if needed is None:
        decided = decide_peaks(problem, normalize=normalize, **how)
        if decided.engine != "tensor" or normalize:
            return decided, decided.engine in ("direct", "tensor")
        needed = "fp16 does not decide among plain sums"
    decided = decide_planes(problem, **how)
    return replace(decided, reason=f"{decided.reason}; planes of a few pairs at a time, as {needed}"), False


def _why_planes(
    problem: Problem, dtypes: tuple[str, str], options: KernelOptions | None, subpixel: str, limits: DeviceLimits
) -> str | None:
    """Why the kernels that find peaks cannot; None where they can."""
    if options is not None and options.variant != "auto":
        return "a variant was asked for"
    if options is not None and options.precision not in (None, "fp16"):
        return f"precision {options.precision} is that of planes"
    if not set(dtypes) <= set(INPUT_TYPES):
        return f"the kernels that find peaks read {', '.join(INPUT_TYPES)}, not {' and '.join(dtypes)}"
    if radius_of(subpixel) > 1:
        return f"sub-pixel method {subpixel} looks farther than the nearest shifts"
    if not finds_peaks(problem.plane_shape, limits):
        return "the window's scores do not fit the shared memory of a block"
    return None


def peaks_by_planes(planes_of: PlanesOf, problem: Problem, lefts: Array, rights: Array, subpixel: str) -> PlanePeaks:
    """Find the peaks of all pairs of lefts (n, H, W) and rights (m, H', W'), paired as in `Problem`."""
    window = window_of(problem)
    padded = math.prod(left + right for left, right in zip(problem.left_shape, problem.right_shape, strict=True))
    elements = _ELEMENTS_AT_ONCE * (_ON_DEVICE if is_device_array(lefts) else 1)
    at_once = max(1, elements // max(padded, math.prod(problem.plane_shape)))
    found = []
    for part in problem.parts(at_once):
        mine = part.problem
        these = lefts[part.left : part.left + mine.lefts, None]
        those = rights[part.right : part.right + mine.rights].reshape(-1, mine.rights_per_left, *problem.right_shape)
        found.append(peaks_of_planes(planes_of(these, those), window, subpixel))
    return _joined(found)


def peaks_by_kernels(
    planes_of: PlanesOf,
    decision: Decision,
    problem: Problem,
    lefts: Array,
    rights: Array,
    *,
    dtypes: tuple[str, str],
    normalize: bool,
    min_overlap_pixels: int,
    subpixel: str,
) -> PlanePeaks:
    """Find the same by the kernels that were decided upon, and by planes where they cannot decide.

    Matrices are handed over standardised where they are scored, else as they are, or as `dtypes` if that is different.
    """
    one = replace(problem, lefts=1, rights=1, rights_per_left=1)
    finder = _finder(current_device(), one, normalize, min_overlap_pixels, decision.engine, decision.kernel)
    # What is standardised is a copy.
    pixels = max(math.prod(problem.left_shape), math.prod(problem.right_shape))
    found = []
    for part in problem.parts(max(1, _ELEMENTS_COPIED // pixels) if normalize else problem.pairs):
        mine = part.problem
        these = lefts[part.left : part.left + mine.lefts], rights[part.right : part.right + mine.rights]
        handed = [_handed(side, dtype, normalize) for side, dtype in zip(these, dtypes, strict=True)]
        records = with_second_try(
            finder.find, *handed, mine.rights_per_left, what="the matrices of some pairs do not fit"
        )
        in_fp16 = normalize and decision.engine == "tensor"
        peaks, undecided = _peaks_of(PeakRecords.of(records[0]), window_of(problem), subpixel, in_fp16=in_fp16)
        if normalize:  # rounding may lift a score above one
            np.clip(peaks.value, -1, 1, out=peaks.value)
        if undecided.size:
            _find_again(peaks, undecided, planes_of, mine, *these, subpixel)
        found.append(peaks)
    return _joined(found)


def _handed(matrices: Array, dtype: str, normalize: bool) -> Array:
    if normalize:
        return standardize(matrices, np.float32).values
    xp: Any = array_namespace(matrices)
    return xp.ascontiguousarray(matrices, dtype)


def _peaks_of(
    records: PeakRecords, window: ShiftWindow, subpixel: str, *, in_fp16: bool
) -> tuple[PlanePeaks, NDArray[np.intp]]:
    """What kernels found as peaks of planes, and which pairs they leave open."""
    undecided = records.row < 0
    records = records.decided()
    # Of equal peaks the one of the smallest shift counts, not the one found first.
    undecided |= records.rival >= records.value - _TIE * np.abs(records.value)
    if in_fp16:
        undecided |= records.rival > records.value - 2 * FP16_ERROR
    exists = ~np.isnan(records.value)
    near, radius = records.around[:, 1:4, 1:4], radius_of(subpixel)
    offset, _ = refine(near[:, 1 - radius : 2 + radius, 1 - radius : 2 + radius], subpixel, _UPSAMPLE)
    peak = np.stack([records.row + window.dy_min, records.column + window.dx_min], axis=1)
    positive = records.rival > 0
    ratio = np.where(positive, records.value / np.where(positive, records.rival, 1.0), np.inf)
    peaks = PlanePeaks(
        peak=peak,
        shift=np.where(exists[:, None], peak + offset, np.nan),
        value=records.value,
        ratio=np.where(exists, ratio, np.nan),
        on_edge=exists & lacks_neighbours(near, window),
    )
    return peaks, np.flatnonzero(undecided & exists)


def _find_again(
    found: PlanePeaks,
    pairs: NDArray[np.intp],
    planes_of: PlanesOf,
    problem: Problem,
    lefts: Array,
    rights: Array,
    subpixel: str,
) -> None:
    """Replace the peaks of some pairs by those of their planes."""
    xp = array_namespace(lefts)
    left, right = pairs // problem.rights_per_left, pairs % problem.rights
    alone = replace(problem, lefts=pairs.size, rights=pairs.size, rights_per_left=1)
    again = peaks_by_planes(planes_of, alone, lefts[xp.asarray(left)], rights[xp.asarray(right)], subpixel)
    for kept, new in zip(found, again, strict=True):
        kept[pairs] = new


def _joined(found: list[PlanePeaks]) -> PlanePeaks:
    return PlanePeaks(*(np.concatenate(values) for values in zip(*found, strict=True)))


@functools.lru_cache(maxsize=4)
def _finder(_device: int, window: Problem, normalize: bool, least: int, engine: str, kernel: str) -> PeakFinder:
    """Prepared once: that takes longer than hundreds of pairs."""
    return PeakFinder(window, normalize=normalize, min_overlap_pixels=least, engine=engine, kernel=kernel)
