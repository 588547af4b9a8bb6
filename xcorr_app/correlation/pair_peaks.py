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
from xcorr_app.correlation.subpixel import radius_of, refine
from xcorr_app.decision import Decision
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.records import PeakRecords
from xcorr_app.gpu.peaks.search import finds_peaks
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.runtime.types import INPUT_TYPES
from xcorr_app.gpu.tensor.sums import FP16_ERROR

__all__ = ["PlanesOf", "decide_shifts", "peaks_by_kernels", "peaks_by_planes"]

PlanesOf = Callable[[Array, Array], Array]
"""Planes (N, M, ny, nx) from lefts (N or 1, 1, H, W) and rights (1 or N, M, H', W')."""

_ELEMENTS_AT_ONCE = 2**22
"""Of planes, or of padded matrices, that are in work together."""
_TIE = 1e-6
"""Share of a peak's height by which a rival that is equal may differ in single precision."""
_UPSAMPLE = 100
"""Grid points per pixel of the sub-pixel method ``dft``."""
_DECIDES_PLAIN_SUMS = "small-peaks"
"""The kernel on tensor cores that marks which plain sums it cannot tell apart."""


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
    needed = _why_planes(problem, dtypes, options, subpixel, limits)
    if needed is None:
        decided = decide_peaks(problem, normalize=normalization == "zncc", **how)
        if decided.engine != "tensor" or normalization == "zncc" or decided.kernel == _DECIDES_PLAIN_SUMS:
            return decided, decided.engine in ("direct", "tensor")
        needed = "fp16 does not decide among plain sums of such matrices"
    decided = decide_planes(problem, **how)
    return replace(decided, reason=f"{decided.reason}; planes of a few pairs at a time, as {needed}"), False


def _why_planes(
    problem: Problem, dtypes: tuple[str, str], options: KernelOptions | None, subpixel: str, limits: DeviceLimits
) -> str | None:
    """Why the kernels that find peaks cannot; None where they can."""
    if options is not None and (options.variant != "auto" or options.sums is not None):
        return "a variant or a type of sums was asked for"
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
    at_once = max(1, _ELEMENTS_AT_ONCE // max(padded, math.prod(problem.plane_shape)))
    found = []
    for part in problem.parts(at_once):
        mine = part.problem
        these = lefts[part.left : part.left + mine.lefts, None]
        those = rights[part.right : part.right + mine.rights].reshape(-1, mine.rights_per_left, *problem.right_shape)
        found.append(peaks_of_planes(planes_of(these, those), window, subpixel))
    return PlanePeaks(*(np.concatenate(values) for values in zip(*map(_fields, found), strict=True)))


def peaks_by_kernels(
    planes_of: PlanesOf,
    decision: Decision,
    problem: Problem,
    lefts: Array,
    rights: Array,
    *,
    normalize: bool,
    least_overlap: int,
    subpixel: str,
) -> PlanePeaks:
    """Find the same by the kernels that were decided upon, and by planes where they cannot decide.

    Lefts and rights are dense and of types that kernels read, those of normalised scores standardised.
    """
    window = window_of(problem)
    one = replace(problem, lefts=1, rights=1, rights_per_left=1)
    finder = _finder(current_device(), one, normalize, least_overlap, decision.engine, decision.kernel)
    records = PeakRecords.of(finder.find(lefts, rights, problem.rights_per_left)[0])
    undecided = records.row < 0
    records = records.decided()
    # Of equal peaks the one of the smallest shift counts, not the one found first.
    undecided |= records.rival >= records.value - _TIE * np.abs(records.value)
    if normalize and decision.engine == "tensor":
        undecided |= records.rival > records.value - 2 * FP16_ERROR
    exists = ~np.isnan(records.value)
    near = records.around[:, 1:4, 1:4]
    radius = radius_of(subpixel)
    offset, _ = refine(near[:, 1 - radius : 2 + radius, 1 - radius : 2 + radius], subpixel, _UPSAMPLE)
    peak = np.stack([records.row + window.dy_min, records.column + window.dx_min], axis=1)
    positive = records.rival > 0
    ratio = np.where(positive, records.value / np.where(positive, records.rival, 1.0), np.inf)
    found = PlanePeaks(
        peak=peak,
        shift=np.where(exists[:, None], peak + offset, np.nan),
        value=records.value,
        ratio=np.where(exists, ratio, np.nan),
        on_edge=exists & lacks_neighbours(near, window),
    )
    open_pairs = np.flatnonzero(undecided & exists)
    if open_pairs.size:
        _find_again(found, open_pairs, planes_of, problem, lefts, rights, subpixel)
    return found


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
    for kept, new in zip(_fields(found), _fields(again), strict=True):
        kept[pairs] = new


def _fields(peaks: PlanePeaks) -> tuple[NDArray[Any], ...]:
    return peaks.peak, peaks.shift, peaks.value, peaks.ratio, peaks.on_edge


@functools.lru_cache(maxsize=4)
def _finder(_device: int, window: Problem, normalize: bool, least: int, engine: str, kernel: str) -> PeakFinder:
    """Prepared once: that takes longer than hundreds of pairs."""
    return PeakFinder(window, normalize=normalize, least_overlap=least, engine=engine, kernel=kernel)
