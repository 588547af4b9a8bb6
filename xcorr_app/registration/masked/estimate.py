"""Shifts of a stack of which only some pixels count."""

from __future__ import annotations

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
from xcorr_app.registration.masked.planes import MaskedPlanes, pixels_alike, standardised
from xcorr_app.registration.masked.rules import Masks, has_static_gaps
from xcorr_app.registration.results.results import ShiftResult
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.solver.basis import BASES
from xcorr_app.registration.solver.gauss_newton import FARTHEST
from xcorr_app.registration.solver.whole_frames import Pyramid, levels_of, smoothed, smoothing_for
from xcorr_app.registration.stack.frames import SINGLE, Frames, read_reference
from xcorr_app.registration.stack.passes import Pass, Progress
from xcorr_app.registration.standard_error.significance import MAX_FALSE_ALARM, significance
from xcorr_app.registration.standard_error.uncertainty import AT_EDGES

_SUBPIXEL = ("gaussian", "quadratic", "parabolic", "none")
_ENGINE = "fft"
_REFUSAL = "reference {!r} takes no mask: use first, last, a frame number or an image"
_Columns = dict[str, NDArray[Any]]
"""What is known of consecutive frames, an entry each."""


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
    refining = _Refining(image, counts, settings.subpixel, frames.count)
    alike = pixels_alike(image[0], counts)
    walk = Pass(frames.count, 4 * frames.shape[0] * frames.shape[1], xp is not np, progress)
    unreadable: dict[int, str] = {}

    def job(start: int, stop: int) -> _Columns:
        chunk = frames.read(start, stop)
        unreadable.update(chunk.unreadable)
        own = masks.of_frames(chunk.frames, start)[:, rows, columns]
        values = standardised(chunk.frames[:, rows, columns], own)
        found, beside = _rated(*against.planes(values, own), window, alike)
        found["non_finite"] = to_host((~xp.isfinite(chunk.frames[:, *part])).sum(axis=(1, 2)))
        found["shifts"], found["sigma"] = refining.of(values, own, found, beside)
        return found

    parts = list(walk.over("measure", job))
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    words = _words(found, list(unreadable), settings)
    right = 1 - quality.wrong_by_chance(found["false_alarm"], words[quality.UNCERTAIN])
    for word in quality.WRONG.keys() & words.keys():
        right = right * np.where(words[word], 1 - quality.WRONG[word], 1.0)
    return ShiftResult(
        shifts=found["shifts"],
        score=found["score"],
        peak_ratio=found["peak_ratio"],
        non_finite=found["non_finite"],
        sigma=quality.honest_errors(found["sigma"], 1 - right),
        significance=found["significance"],
        flags=tuple(tuple(word for word, of in words.items() if of[t]) for t in range(frames.count)),
        fft_shifts=np.full((frames.count, 2), np.nan),
        difference=np.full(frames.count, np.nan),
        window=window,
        engine=_ENGINE,
        reference=described,
        notes=(masks.note(share),),
        unreadable=unreadable,
        wrong=1 - right,
        tiles=np.full((frames.count, 0, 0), np.nan, np.float32),
    )


class _Refining:
    """Refines whole shifts of so many frames against an image (1, h, w), standardised, of which some pixels count."""

    def __init__(self, image: Array, counts: Array, method: str, count: int) -> None:
        self._method, self._sigma = method, smoothing_for(float(quality.signal_fraction(image)[0]))
        levels = levels_of(smoothed(image, self._sigma)[0], BASES["translation"], counts, full_size_alone=True)
        self._pyramid = Pyramid(levels, BASES["translation"], count)

    def of(
        self, frames: Array, counts: Array, part: _Columns, beside: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Shifts and standard errors (n, 2) of frames (n, h, w), of whose planes the values `beside` a peak are known.

        The scores of a plane are of other pixels at every shift, which bends its peak near a mask's edge: their fit is
        where the solver begins, with pixels that count in both, whatever the shift.
        """
        known, peak = np.isfinite(part["score"])[:, None], part["peak"]
        inner = known & ~part["on_edge"][:, None]
        offset, _ = refine(np.where(inner[..., None], beside, 0.0), self._method, 1)
        shift = peak + offset
        motion = np.tile(np.eye(3), (len(frames), 1, 1))
        motion[:, :2, 2] = -shift
        fits = self._pyramid.refined([smoothed(frames, self._sigma)], np.arange(len(frames)), motion, counts)
        with np.errstate(invalid="ignore"):
            near = (np.abs(fits.motion[:, :2, 2] + shift) < FARTHEST).all(axis=1) & fits.converged
            variance, at_edges = np.diagonal(fits.covariance, 0, 1, 2), AT_EDGES**2 / np.maximum(fits.pixels, 1)
            # Of a place that the solver leaves nothing is known.
            sigma = np.where(near[:, None], np.sqrt(variance + at_edges[:, None]), np.inf)
        if self._method == "gaussian":
            shift = np.where(near[:, None], -fits.motion[:, :2, 2], shift)
        return np.where(known, np.where(inner, shift, peak), np.nan), np.where(inner, sigma, np.nan)


def _rated(planes: Array, number: Array, window: ShiftWindow, alike: float) -> tuple[_Columns, NDArray[np.float64]]:
    """What is known of the peaks of planes (n, ny, nx) at which a `number` of pixels meet, of which `alike` are as one.

    And the values (n, 3, 3) beside them.
    """
    xp = array_namespace(planes)
    peaks = find_peaks(planes, (slice(None), slice(None)), (-window.dy_min, -window.dx_min))
    place = xp.asarray(peaks.row), xp.asarray(peaks.column)
    rating = significance(planes, *place, peaks.value, scores=True)
    number = xp.broadcast_to(number, planes.shape)  # of one mask they are known once
    met = to_host(neighbourhoods(number, *place, 0))[:, 0, 0]
    beside: NDArray[np.float64] = to_host(neighbourhoods(planes, *place, 1)).astype(np.float64)
    found = {
        "score": peaks.value.astype(np.float64),
        "peak_ratio": peaks.ratio(),
        "significance": rating.z,
        "false_alarm": rating.false_alarm,
        "chance_score": quality.score_by_chance(met / alike, window),
        "peak": np.stack([peaks.row + window.dy_min, peaks.column + window.dx_min], axis=1),
        "on_edge": lacks_neighbours(beside, window),
    }
    return found, beside


def _words(found: _Columns, unreadable: list[int], settings: Settings) -> dict[str, NDArray[np.bool_]]:
    """Frames (T,) that each word is said of."""
    known, absent = np.isfinite(found["score"]), np.isin(np.arange(found["score"].size), unreadable)
    ambiguous = found["peak_ratio"] < quality.AMBIGUOUS_RATIO
    with np.errstate(invalid="ignore"):
        uncertain = found["score"] < found["chance_score"]
        uncertain |= (found["false_alarm"] > MAX_FALSE_ALARM) & ~ambiguous
        sure = known & ~uncertain & ~ambiguous & ~found["on_edge"]
        moves = found["shifts"][sure] if 2 * sure.sum() > known.sum() else found["shifts"][:0]
        uncertain |= ~(found["sigma"] <= settings.sigma_limit(moves)).all(axis=1)
    return {
        quality.EDGE: known & found["on_edge"],
        quality.AMBIGUOUS: known & ambiguous,
        quality.UNCERTAIN: known & uncertain,
        quality.FLAT: ~known & ~absent,
        # Pixels that are no numbers are masked like others: no reason to look at a frame.
        quality.UNREADABLE: absent,
    }


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
