"""The peak of every pair of matrices: the public entry point that hands out shifts and scores, and no plane."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.arrays.kinds import as_array
from xcorr_app.correlation.arrangement import Arrangement, arrange, engine_dtypes
from xcorr_app.correlation.batches import planes_in_batches
from xcorr_app.correlation.engines import limits_of
from xcorr_app.correlation.forms import Form
from xcorr_app.correlation.normalize import min_overlap_pixels
from xcorr_app.correlation.pair_peaks import decide_shifts, peaks_by_kernels, peaks_by_planes
from xcorr_app.correlation.plane import (
    DEFAULT_MIN_OVERLAP,
    Normalization,
    check_operands,
    check_range,
    planes_of_pairs,
    refuse_not_finite,
)
from xcorr_app.correlation.plane_peaks import PlanePeaks
from xcorr_app.correlation.problem import problem_of, window_of
from xcorr_app.correlation.subpixel import METHODS
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.gpu.runtime.memory import with_second_try
from xcorr_app.gpu.runtime.placement import on_device_of
from xcorr_app.gpu.runtime.types import INPUT_TYPES
from xcorr_app.shown import axes_of, html_table


@dataclass(frozen=True, repr=False)
class FoundShifts:
    """The peak of every correlation. NumPy arrays whose leading axes are the form's: (), (M,) or (N, M).

    Attributes
    ----------
    shift : ndarray of float64, shape (..., 2)
        dy, dx in pixels: `left` shows `right` displaced by so many rows down and columns right. NaN where no shift is
        valid.
    score : ndarray of float64, shape (...)
        Value at the whole shift: the normalised correlation, or the plain sum. NaN where no shift is valid.
    ratio : ndarray of float64, shape (...)
        The peak over the highest other local maximum, at least 3 shifts away; infinite where none is positive.
    peak : ndarray of int, shape (..., 2)
        The whole shift; without meaning where `score` is NaN.
    on_edge : ndarray of bool, shape (...)
        The peak has no valid neighbour on one side: higher values may lie beyond.
    """

    shift: NDArray[np.float64]
    score: NDArray[np.float64]
    ratio: NDArray[np.float64]
    peak: NDArray[np.intp]
    on_edge: NDArray[np.bool_]

    def __len__(self) -> int:
        return self.score.size

    def __repr__(self) -> str:
        return f"FoundShifts({self.summary()})"

    def _repr_html_(self) -> str:
        values = {"dy": self.shift[..., 0], "dx": self.shift[..., 1], "score": self.score, "ratio": self.ratio}
        columns = {name: [f"{value:.3f}" for value in each.ravel()] for name, each in values.items()}
        places = [", ".join(map(str, place)) for place in np.ndindex(self.score.shape)]
        return html_table(repr(self), {"pair": places, **columns})

    def summary(self) -> str:
        """Say in a line how many pairs there are, how far they lie apart, and how alike they are."""
        known, pairs = np.isfinite(self.score), f"{len(self)} pair{'' if len(self) == 1 else 's'}"
        if not known.any():
            return f"{pairs}, none with a shift"
        far, scores = np.linalg.norm(self.shift[known], axis=1).max(), self.score[known]
        return f"{pairs}, largest shift {far:.2f} px, scores {scores.min():.3g} to {scores.max():.3g}"

    def plot(self, axes: Any = None) -> Any:
        """Draw all shifts as points, brighter where pairs are more alike; returns the axes of matplotlib, or `axes`."""
        axes, peaks = axes_of(axes), self.flat()
        axes.scatter(peaks.shift[:, 1], peaks.shift[:, 0], c=self.score.ravel())
        axes.set(xlabel="columns (pixels)", ylabel="rows (pixels)", aspect="equal")
        return axes

    def flat(self) -> PlanePeaks:
        """Return the same with one leading axis, as peaks of finished planes come."""
        shift, peak = self.shift.reshape(-1, 2), self.peak.reshape(-1, 2)
        return PlanePeaks(peak, shift, self.score.reshape(-1), self.ratio.reshape(-1), self.on_edge.reshape(-1))


def find_shifts(
    left: Array,
    right: Array,
    form: Form = "one-to-one",
    max_shift: float | tuple[float, float] | ShiftWindow | None = None,
    *,
    normalization: Normalization = "zncc",
    engine: str = "auto",
    kernel_options: KernelOptions | None = None,
    min_overlap: float = DEFAULT_MIN_OVERLAP,
    subpixel: str = "gaussian",
    check_finite: bool = True,
) -> FoundShifts:
    """Find the shift at which matrices correlate best, of every pair of a form; no plane is kept.

    The same peaks as those of the planes of :func:`xcorr_app.cross_correlate`, up to rounding. Of several that are
    equal the one nearest to shift zero.

    Parameters
    ----------
    left, right, form, max_shift, normalization, min_overlap
        As for :func:`xcorr_app.cross_correlate`.
    engine : str
        As there. ``auto`` on CuPy arrays also takes kernels that find peaks as they sum: of plain sums of matrices of
        up to 64 x 64 one that does all of a pair in one block, on tensor cores. Peaks among fp16 sums are recomputed in
        single precision, and pairs that fp16 does not decide are found again by planes.
    kernel_options : KernelOptions, optional
        As there; a variant or precision ``fp16x2`` makes planes, a few pairs at a time.
    subpixel : {'gaussian', 'dft', 'quadratic', 'parabolic', 'none'}
        How the peak is located between whole pixels: see :mod:`xcorr_app.correlation.subpixel`.
    check_finite : bool
        Whether to look for NaN and infinite values, in the matrices and, with normalization ``none``, in the sums.

    Returns
    -------
    FoundShifts
        NumPy arrays; the device is waited for. `ratio` is exact to 1e-3 where peaks were searched in fp16.

    Raises
    ------
    ArgumentError, ShapeError, DataTypeError
        For unknown names, shapes that do not fit the form, non-finite values, sums that do not fit their type, arrays
        of two kinds.
    DeviceError
        If the engine cannot run on such arrays, or they live on two devices.
    DeviceMemoryError
        If one pair of matrices does not fit into the device's memory.

    References
    ----------
    Lewis 1995, "Fast normalized cross-correlation".

    Examples
    --------
    >>> import numpy as np, xcorr_app as xc
    >>> reference = np.random.default_rng(0).normal(size=(48, 64))
    >>> frames = np.stack([np.roll(reference, shift, axis=(0, 1)) for shift in [(2, -3), (0, 4)]])
    >>> found = xc.find_shifts(reference, frames, "one-to-many", max_shift=8)
    >>> found.peak.tolist()
    [[-2, 3], [0, -4]]
    """
    left, right = as_array(left, "left"), as_array(right, "right")
    xp = check_operands(left, right, normalization, min_overlap)
    if subpixel not in METHODS:
        raise ArgumentError(f"unknown subpixel method {subpixel!r}: use one of {', '.join(METHODS)}")
    with on_device_of(left, right):
        # Refuses what does not fit together, and knows the sizes.
        asked = left, right, form, max_shift, normalization
        how = with_second_try(arrange, *asked, engine, kernel_options, xp, what="tables do not fit")
        if check_finite:
            refuse_not_finite(left=left, right=right)
        problem = _problem_of(how)
        dtypes = handed_dtypes(left.dtype, right.dtype, normalization)
        decision, by_kernels = decide_shifts(
            problem, dtypes, normalization, engine=engine, options=kernel_options,
            subpixel=subpixel, limits=limits_of(xp),
        )  # fmt: skip
        sums_are_checked = check_finite and normalization == "none"

        def planes_of(lefts: Array, rights: Array) -> Array:
            """Planes by what was decided, in float32 at least: as precise as where they are handed out."""
            options = _of_planes(kernel_options)
            way = with_second_try(arrange, *asked, decision.engine, options, xp, what="tables do not fit")
            of_pairs = functools.partial(planes_of_pairs, way, normalization, min_overlap)
            planes = planes_in_batches(of_pairs, lefts, rights, way.window.shape, way.dtype)
            if sums_are_checked:
                check_range(planes, left, right)
            return planes if normalization == "zncc" else _of_overlaps(planes, problem, xp)

        lefts, rights = left.reshape(-1, *left.shape[-2:]), right.reshape(-1, *right.shape[-2:])
        if by_kernels:
            scored = normalization == "zncc"
            least = min_overlap_pixels(problem.left_shape, problem.right_shape, min_overlap) if scored else 1
            found = peaks_by_kernels(
                planes_of, decision, problem, lefts, rights,
                dtypes=dtypes, normalize=scored, min_overlap_pixels=least, subpixel=subpixel,
            )  # fmt: skip
            if sums_are_checked:
                check_range(found.value[~np.isnan(found.value)], left, right)
        else:
            found = peaks_by_planes(planes_of, problem, lefts, rights, subpixel)
        return _in_form(found, how.shape[:-2])


def handed_dtypes(left: np.dtype[Any], right: np.dtype[Any], normalization: str) -> tuple[str, str]:
    """Names of the types in which matrices of these types are handed to what finds peaks."""
    left_name, right_name = engine_dtypes(left, right, normalization)
    if "float64" in (left_name, right_name):
        return "float64", "float64"
    # The other small types, which no kernel reads, are exact in float32.
    left_name, right_name = (name if name in INPUT_TYPES else "float32" for name in (left_name, right_name))
    return left_name, right_name


def _of_overlaps(planes: Array, problem: Problem, xp: Any) -> Array:
    """Planes of floats that are NaN at shifts without any overlap, where sums are zero by definition."""
    window = window_of(problem)
    counted = window.overlapping(problem.left_shape, problem.right_shape)
    if counted == window:
        return planes
    masked = xp.full_like(planes, np.nan)
    if counted is not None:
        place = (..., *counted.inside(window))
        masked[place] = planes[place]
    return masked


def _in_form(found: PlanePeaks, shape: tuple[int, ...]) -> FoundShifts:
    return FoundShifts(
        shift=found.shift.reshape(*shape, 2),
        score=found.value.reshape(shape),
        ratio=found.ratio.reshape(shape),
        peak=found.peak.reshape(*shape, 2),
        on_edge=found.on_edge.reshape(shape),
    )


def _problem_of(how: Arrangement) -> Problem:
    (lefts, _, *left_size), (sets, per_left, *right_size) = how.left_shape, how.right_shape
    sizes = (left_size[0], left_size[1]), (right_size[0], right_size[1])
    return problem_of(*sizes, how.window, lefts, sets * per_left, per_left)


def _of_planes(options: KernelOptions | None) -> KernelOptions | None:
    """Options where pairs that single fp16 numbers cannot decide need planes that are more exact."""
    return replace(options, precision="fp16x2") if options is not None and options.precision == "fp16" else options
