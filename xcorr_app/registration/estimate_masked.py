"""Shifts of a stack of which only some pixels count."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.peaks import find_peaks, neighbourhoods
from xcorr_app.correlation.plane_peaks import lacks_neighbours
from xcorr_app.correlation.subpixel import refine
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration import quality
from xcorr_app.registration.masked.planes import MaskedPlanes, correlated_pixels, standardised
from xcorr_app.registration.masked.rules import Masks, has_static_gaps
from xcorr_app.registration.measuring.measured import ShiftColumns
from xcorr_app.registration.results.results import ShiftResult
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.solver.basis import BASES
from xcorr_app.registration.solver.gauss_newton import FARTHEST
from xcorr_app.registration.solver.whole_frames import Pyramid
from xcorr_app.registration.stack.frames import SINGLE, Frames, read_reference
from xcorr_app.registration.stack.passes import Pass, Progress
from xcorr_app.registration.standard_error.significance import significance
from xcorr_app.registration.standard_error.uncertainty import AT_EDGES
from xcorr_app.registration.warping.matrices import translated

_SUBPIXEL = ("gaussian", "quadratic", "parabolic", "none")
_ENGINE = "fft"
_REFUSAL = "reference {!r} takes no mask: use first, last, a frame number or an image"


def masks_for(frames: Frames, reference: str | int | Array, settings: Settings) -> Masks | None:
    """Masks that are asked for, or that the stack needs: pixels that all frames lack are no part of the scene."""
    if settings.masks is not None:
        return settings.masks
    return Masks("finite") if takes_masks(reference, settings) and has_static_gaps(frames) else None


def takes_masks(reference: object, settings: Settings) -> bool:
    """Whether frames can be measured by the pixels that count."""
    return _problem(reference, settings) is None


def check_masks(reference: object, settings: Settings) -> None:
    """Raise ArgumentError where they cannot."""
    if (problem := _problem(reference, settings)) is not None:
        raise ArgumentError(problem)


def estimate_masked(
    frames: Frames,
    reference: str | int | Array,
    settings: Settings,
    masks: Masks,
    xp: Any,
    progress: Progress | None = None,
) -> ShiftResult:
    """Measure frames against one image, by the pixels that count in both; what `estimate_shifts` does with a mask.

    Every frame is compared with ``first``, ``last``, a frame by its number, or an image, all of whose pixels count
    but for what the rule, or a mask (Y, X), leaves out.
    """
    check_masks(reference, settings)
    masks.check(frames.count, frames.shape)
    image, number, described = read_reference(frames, reference, _REFUSAL.format(reference))
    counts = masks.of_reference(image, number)
    if not bool(counts.any()):
        raise ArgumentError("mask: no pixel of the reference counts; choose another reference, or another mask")
    part = settings.roi or (slice(None), slice(None))
    share, (rows, columns) = float(counts[part].mean()), masks.rectangle(part, frames.shape)
    image, counts = image[rows, columns], counts[rows, columns]
    window = settings.window(frames.shape)
    image = standardised(xp.where(counts, image, 0.0).astype(np.float64)[None], counts[None])
    against = MaskedPlanes(image[0], counts, window, settings.min_overlap)
    pyramid = Pyramid(image, BASES["translation"], counts, frames.count, full_size_alone=True)
    alike = correlated_pixels(image[0], counts)
    walk = Pass(frames.count, 4 * frames.shape[0] * frames.shape[1], xp is not np, progress)

    # A frame that shows anything lies where it lies, as surely as the edges of any frame tell.
    itself = number if against.power > 0 else None
    sure = AT_EDGES / max(share * math.prod(settings.measured_shape(frames.shape)), 1.0) ** 0.5

    def job(start: int, stop: int) -> tuple[int, ShiftColumns]:
        chunk, found = frames.read(start, stop), ShiftColumns.empty(stop - start)
        found.shifts[:], found.sigma[:] = 0, sure
        found.score[:], found.peak_ratio[:], found.false_alarm[:] = 1, np.inf, 0
        if (others := np.flatnonzero(np.arange(start, stop) != itself)).size:
            own = masks.of_frames(chunk.frames, start)[others, rows, columns]
            values = standardised(chunk.frames[others, rows, columns], own)
            rated, peak, beside = _rated(*against.planes(values, own), window, alike)
            rated.shifts, rated.sigma = _refined(pyramid, settings.subpixel, values, own, rated, peak, beside)
            found.put(others, rated)
        found.unreadable[:] = np.isin(np.arange(start, stop), list(chunk.unreadable))
        found.usable, found.reasons = ~found.unreadable, chunk.unreadable
        found.non_finite[:] = to_host((~xp.isfinite(chunk.frames[:, *part])).sum(axis=(1, 2)))
        return start, found

    measured = ShiftColumns.empty(frames.count)
    for start, found in walk.over("measure", job):
        measured.put(slice(start, start + found.usable.size), found)
        measured.reasons |= found.reasons
    # Pixels that are no numbers are masked like others: no reason to look at a frame.
    non_finite, measured.non_finite = measured.non_finite, np.zeros_like(measured.non_finite)
    wrong = measured.wrong(settings)
    return ShiftResult(
        shifts=measured.shifts,
        score=measured.score,
        peak_ratio=measured.peak_ratio,
        non_finite=non_finite,
        sigma=quality.honest_errors(measured.sigma, wrong),
        significance=measured.significance,
        flags=measured.flags(settings),
        fft_shifts=measured.shifts + measured.check_offset,
        window=window,
        engine=_ENGINE,
        reference=described,
        notes=(masks.note(share),),
        unreadable=measured.reasons,
        wrong=wrong,
        tiles=measured.tiles,
    )


def _refined(
    pyramid: Pyramid,
    method: str,
    frames: Array,
    counts: Array,
    found: ShiftColumns,
    peak: NDArray[np.intp],
    beside: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shifts and standard errors (n, 2) of frames (n, h, w), of whose planes the values `beside` a peak are known.

    The scores of a plane are of other pixels at every shift, which bends its peak near a mask's edge: their fit is
    where the solver begins, with pixels that count in both, whatever the shift.
    """
    known = np.isfinite(found.score)[:, None]
    inner = known & ~found.on_edge[:, None]
    offset, _ = refine(np.where(inner[..., None], beside, 0.0), method, 1)
    shift = peak + offset
    fits = pyramid.refined(pyramid.sizes(frames), np.arange(len(frames)), translated(shift), counts)
    with np.errstate(invalid="ignore"):
        near = (np.abs(fits.motion[:, :2, 2] + shift) < FARTHEST).all(axis=1) & fits.converged
        variance, at_edges = np.diagonal(fits.covariance, 0, 1, 2), AT_EDGES**2 / np.maximum(fits.pixels, 1)
        # Of a place that the solver leaves, or on the edge, nothing is known.
        sigma = np.where(near[:, None] & inner, np.sqrt(variance + at_edges[:, None]), np.inf)
    if method == "gaussian":
        shift = np.where(near[:, None], -fits.motion[:, :2, 2], shift)
    return np.where(known, np.where(inner, shift, peak), np.nan), np.where(known, sigma, np.nan)


def _rated(
    planes: Array, number: Array, window: ShiftWindow, alike: float
) -> tuple[ShiftColumns, NDArray[np.intp], NDArray[np.float64]]:
    """What is known of the peaks of planes (n, ny, nx) at which a `number` of pixels meet, of which `alike` are as one.

    And where they are (n, 2), and the values (n, 3, 3) beside them.
    """
    xp = array_namespace(planes)
    peaks = find_peaks(planes, (slice(None), slice(None)), (-window.dy_min, -window.dx_min))
    place = xp.asarray(peaks.row), xp.asarray(peaks.column)
    rating = significance(planes, *place, peaks.value, scores=True)
    number = xp.broadcast_to(number, planes.shape)  # of one mask they are known once
    met = to_host(neighbourhoods(number, *place, 0))[:, 0, 0]
    beside: NDArray[np.float64] = to_host(neighbourhoods(planes, *place, 1)).astype(np.float64)
    found = ShiftColumns.empty(len(planes))
    found.score, found.peak_ratio = peaks.value.astype(np.float64), peaks.ratio()
    found.significance, found.false_alarm = rating.z, rating.false_alarm
    found.chance_score, found.on_edge = quality.score_by_chance(met / alike, window), lacks_neighbours(beside, window)
    return found, np.stack([peaks.row + window.dy_min, peaks.column + window.dx_min], axis=1), beside


def _problem(reference: object, settings: Settings) -> str | None:
    """Why frames that are compared so cannot be measured with masks."""
    name = reference if isinstance(reference, str) else SINGLE[0]
    refused = {
        f"normalization {settings.normalization!r} takes no mask: use 'zncc'": settings.normalization != "zncc",
        f"sub-pixel method {settings.subpixel!r} takes no mask: use one of {', '.join(_SUBPIXEL)}": (
            settings.subpixel not in _SUBPIXEL
        ),
        "a prefilter would smear what is masked into what counts: leave one of them out": bool(settings.prefilter.name),
        "smooth_time takes no mask: leave one of them out": settings.smooth_time > 1,
        f"engine {settings.engine!r} takes no mask: use 'auto' or 'fft'": settings.engine not in ("auto", _ENGINE),
        _REFUSAL.format(name): name not in SINGLE,
    }
    return next((problem for problem, holds in refused.items() if holds), None)
