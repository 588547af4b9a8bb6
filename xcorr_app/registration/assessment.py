"""How good a registration is: what can be said of a stack before and after it."""

from __future__ import annotations

import math
import reprlib
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xcorr_app.arrays.kinds import as_array
from xcorr_app.errors import DataTypeError, ShapeError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.gpu.runtime.placement import on_device_of
from xcorr_app.registration.assessment_sums import AssessmentSums, shared_area
from xcorr_app.registration.estimate import estimate_from
from xcorr_app.registration.masked.rules import Masks
from xcorr_app.registration.one_blas_thread import one_blas_thread
from xcorr_app.registration.results.results import ShiftResult
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import ArrayFrames
from xcorr_app.registration.stack.passes import Pass
from xcorr_app.shown import html_table


class BeforeAfter(NamedTuple):
    """The same number before and after registration; NaN where it is not known."""

    before: float
    after: float


@dataclass(frozen=True)
class Assessment:
    """Quality of a registration, as :func:`xcorr_app.assess` and ``xcorr align`` find it."""

    correlation: BeforeAfter
    """Correlation of the frames with the mean of the others, over all pixels of all frames, in [-1, 1]."""
    crispness: BeforeAfter
    """Root mean squared gradient of the mean image, in standard deviations of a frame before, per pixel; no noise."""
    residual_shift: BeforeAfter
    """Root mean squared length, in pixels, of the shifts before, about their mean, and of those of a few frames that
    were registered again after."""
    registered_again: int
    """How many frames that is: those of the sample whose shift could be trusted."""
    sampled: int
    """How many frames of the stack were tried."""
    corrected: float
    """Share of the frames, in [0, 1], that were moved by a shift to trust."""
    closure: float | None = None
    """Root mean squared error of closure in pixels, where the shifts form loops; None where they do not."""

    def summary(self) -> str:
        """Say in a line what became better."""
        (was, now), (blurred, crisp) = self.correlation, self.crispness
        better = f"correlation {was:.3f} to {now:.3f}, crispness {blurred:.4f} to {crisp:.4f}"
        return f"{better}, {self.corrected:.0%} corrected"

    def _repr_html_(self) -> str:
        pairs = {name.replace("_", " "): getattr(self, name) for name in _PAIRS}
        sides = {side: [f"{getattr(pair, side):.4f}" for pair in pairs.values()] for side in BeforeAfter._fields}
        return html_table(self.summary(), {"": list(pairs), **sides})

    def as_record(self) -> dict[str, Any]:
        """Plain values for JSON; None in place of NaN."""
        sides = {name: getattr(self, name)._asdict() for name in _PAIRS}
        return vars(self) | {
            name: {side: value if math.isfinite(value) else None for side, value in pair.items()}
            for name, pair in sides.items()
        }

    @staticmethod
    def from_record(record: dict[str, Any]) -> Assessment:
        """Make it again from what `as_record` gave."""
        sides = {
            name: {side: math.nan if value is None else value for side, value in record[name].items()}
            for name in _PAIRS
        }
        return Assessment(**record | {name: BeforeAfter(**pair) for name, pair in sides.items()})


_PAIRS = ("correlation", "crispness", "residual_shift")
_UNKNOWN = BeforeAfter(math.nan, math.nan)


@one_blas_thread()
def assess(before: Array, after: Array, result: ShiftResult | None = None) -> Assessment:
    """Say how good a registration is, from the stack before and after it.

    Only the part that every frame covers after registration is looked at, on both sides; where that is less than a
    quarter of the frame, the part that most of them cover. What a frame does not cover is recognised as rows and
    columns at its edges that have one value throughout, or none. Frames are standardised, so that bright ones count no
    more than dark ones; flat frames do not count.

    Parameters
    ----------
    before, after : array_like, shape (T, Y, X)
        NumPy, CuPy, or what :mod:`xcorr_app.arrays.kinds` takes, both alike; integers or floating point.
        NaN and infinite pixels count as their frame's mean.
    result : ShiftResult, optional
        Says which frames were moved by a shift to trust. Without it, each frame that differs counts as corrected.

    Returns
    -------
    Assessment
        ``correlation``: of the frames with the mean of the others, over all pixels of all frames: sum over frames of
        <z, m> / sqrt(sum <z, z> sum <m, m>), z the standardised frame and m the mean of all others. Interpolation
        smooths noise and so raises it by itself. ``crispness``: root of the mean squared gradient of the mean image, in
        standard deviations of a frame before, per pixel; the product of the gradients of the means of even and odd
        frames, to which noise does not contribute. ``residual_shift``: up to 4 even frames spread over the stack
        are registered against the mean of the odd ones after registration; root mean squared length of their shifts in
        pixels. Before, that of all shifts of the result about their mean; without a result those of the same few frames
        before, against the same mean. NaN where fewer than half have a shift to trust.

    Raises
    ------
    ShapeError, DataTypeError
        If the two are not stacks (T, Y, X) of real numbers, of one shape and one kind of array.

    References
    ----------
    Crispness and correlation with the mean as measures of registration: Pnevmatikakis and Giovannucci 2017,
    doi 10.1016/j.jneumeth.2017.07.031.

    Examples
    --------
    >>> import numpy as np, xcorr_app as xc
    >>> from scipy.ndimage import gaussian_filter
    >>> scene = gaussian_filter(np.random.default_rng(0).normal(size=(140, 140)), 2)
    >>> stack = np.stack([scene[10 + t : 110 + t, 20 - t : 120 - t] for t in range(10)])
    >>> result = xc.estimate_shifts(stack, max_shift=16)
    >>> quality = xc.assess(stack, xc.apply_shifts(stack, result.applied()), result)
    >>> [round(value, 2) + 0.0 for value in (*quality.correlation, *quality.residual_shift, quality.corrected)]
    [0.52, 1.0, 4.06, 0.0, 1.0]
    """
    before, after = as_array(before, "before"), as_array(after, "after")
    xp = array_namespace(before)
    if array_namespace(after) is not xp:
        raise DataTypeError("before and after are arrays of different libraries: copy one of them")
    if not (result is None or isinstance(result, ShiftResult)):
        raise DataTypeError(f"result is {reprlib.repr(result)}: give what estimate_shifts returned")
    frames, moved = ArrayFrames(before), ArrayFrames(after)
    if before.shape != after.shape:
        raise ShapeError(f"before has shape {before.shape}, after has {after.shape}: they must be of one shape")
    with on_device_of(before, after):
        walk = Pass(frames.count, frames.shape[0] * frames.shape[1], xp is not np)
        chunks = [slice(i, i + walk.images_at_once) for i in range(0, frames.count, walk.images_at_once)]
        if result is None:
            differ = [to_host((before[part] != after[part]).any(axis=(1, 2))) for part in chunks]
            corrected = float(np.concatenate(differ).mean())
        extents = np.concatenate([_extents(before[part], after[part]) for part in chunks])
        shared = shared_area(frames.shape, extents)
        defects = None if result is None else result.defects
        moves = None if result is None or defects is None else np.nan_to_num(result.applied())
        sums = None if shared is None else AssessmentSums(shared, None, defects, moves)
        for part in chunks:
            if sums is not None:
                sums.add(before[part], after[part])
        if result is not None:
            return assessment_of(sums, Settings(), moved.shape, result)
        return _assessment(sums, Settings(), moved.shape, corrected)


def assessment_of(
    sums: AssessmentSums | None, settings: Settings, shape: tuple[int, int], result: ShiftResult
) -> Assessment:
    """Assessment from sums over all frames of a `shape`, None where the frames have no part in common.

    The kept frames are registered again as `settings` say, within the same window of shifts, and by the contrast that
    was found best for them, where one was: trying again would take twice as long as registering.
    """
    taken = replace(settings, contrast=result.contrast or settings.contrast)
    shifts = np.where(result.trusted[:, None], result.shifts, np.nan)
    return _assessment(sums, taken, shape, float(result.trusted.mean()), shifts)


def _assessment(
    sums: AssessmentSums | None,
    settings: Settings,
    shape: tuple[int, int],
    corrected: float,
    shifts: NDArray[np.float64] | None = None,
) -> Assessment:
    """Assessment of which the shifts (T, 2) before may be known, NaN where they are not to be trusted."""
    if sums is None:
        return Assessment(_UNKNOWN, _UNKNOWN, _UNKNOWN, 0, 0, corrected)
    correlation, crispness = BeforeAfter(*sums.correlation()), BeforeAfter(*sums.crispness())
    again = replace(settings, masks=Masks("finite") if sums.masked else None)
    residual, registered = _residual_shift(sums.to_register(), again, shape, shifts)
    return Assessment(correlation, crispness, residual, registered, int(sums.kept.size), corrected)


def _residual_shift(
    found: tuple[Array, Array, Array] | None,
    settings: Settings,
    shape: tuple[int, int],
    before: NDArray[np.float64] | None,
) -> tuple[BeforeAfter, int]:
    """Root mean squared shift before and of the kept frames after, and how many of the latter are to be trusted."""
    if found is None:
        return _UNKNOWN, 0
    were, are, reference = found
    window = settings.window(shape)
    again = replace(
        settings,
        max_shift=(float(window.dy_max), float(window.dx_max)),
        normalization="zncc",
        subpixel="gaussian",
        roi=None,
        engine="auto",
        kernel_options=None,
        smooth_time=1,  # the frames kept lie far apart
    )
    xp = array_namespace(are)
    frames = xp.concatenate([were, are]) if before is None else are
    result = estimate_from(ArrayFrames(frames), reference, again, xp=xp)
    shifts = np.where(result.trusted[:, None], result.shifts, np.nan)
    if before is None:
        before, shifts = np.split(shifts, 2)
    known = np.isfinite(shifts).all(axis=1)
    drift = before[np.isfinite(before).all(axis=1)]
    if len(drift):
        drift = drift - drift.mean(axis=0)
    return BeforeAfter(_length(drift, len(before)), _length(shifts[known], len(shifts))), int(known.sum())


def _length(shifts: NDArray[np.float64], tried: int) -> float:
    """Root mean squared length of shifts (n, 2), of so many tried; NaN where these are less than half."""
    return float(np.sqrt((shifts**2).sum(axis=1).mean())) if 2 * len(shifts) >= tried else math.nan


def _extents(before: Array, after: Array) -> NDArray[np.int64]:
    """(n, 4) first row, stop, first column, stop of what frames cover: all but edges constant after, not before."""
    limits = []
    for axis in (2, 1):
        bare = to_host(_constant(after, axis) & ~_constant(before, axis))
        length = bare.shape[1]
        first = np.where(bare.all(axis=1), length, np.argmin(bare, axis=1))
        last = np.argmin(bare[:, ::-1], axis=1)
        limits += [first, np.where(first == length, length, length - last)]
    return np.stack(limits, axis=1).astype(np.int64)


def _constant(frames: Array, axis: int) -> Array:
    """Rows (axis 2) or columns (axis 1) that have one value throughout, or none that is finite."""
    same = (frames == (frames[:, :, :1] if axis == 2 else frames[:, :1, :])).all(axis=axis)
    return same | ~array_namespace(frames).isfinite(frames).any(axis=axis) if frames.dtype.kind == "f" else same
