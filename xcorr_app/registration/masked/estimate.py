"""Shifts of a stack of which only some pixels count."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.peaks import find_peaks, nearest_of_equals, neighbourhoods, prefer
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
from xcorr_app.registration.solver.whole_frames import Pyramid, levels_of, smoothed, smoothing_for
from xcorr_app.registration.stack.frames import Frames
from xcorr_app.registration.stack.passes import Pass, Progress
from xcorr_app.registration.stack.single_reference import SINGLE, read_reference
from xcorr_app.registration.standard_error.significance import MAX_FALSE_ALARM, significance
from xcorr_app.registration.standard_error.uncertainty import AT_EDGES

_SUBPIXEL = ("gaussian", "quadratic", "parabolic", "none")
_ENGINE = "fft"
_FARTHEST = 1.0
"""Pixels from the peak of a plane beyond which another place was found."""


def masks_for(frames: Frames, reference: str | int | Array, settings: Settings) -> Masks | None:
    """Masks that are asked for, or that the stack needs: pixels that all frames lack are no part of the scene."""
    if settings.masks is not None:
        return settings.masks
    return Masks("finite") if takes_masks(reference, settings) and has_static_gaps(frames) else None


def takes_masks(reference: str | int | Array, settings: Settings) -> bool:
    """Whether frames can be measured by the pixels that count."""
    return (not isinstance(reference, str) or reference in SINGLE) and _problem(settings) is None


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
    if (problem := _problem(settings)) is not None:
        raise ArgumentError(problem)
    masks.check(frames.count, frames.shape)
    image, counts, described = _reference(frames, reference, masks, xp)
    if not bool(counts.any()):
        raise ArgumentError("mask: no pixel of the reference counts; choose another reference, or another mask")
    rows, columns = settings.roi or (slice(None), slice(None))
    counts = counts[rows, columns]
    window = settings.window(frames.shape)
    image = standardised(image[rows, columns][None], counts[None])
    against = MaskedPlanes(image[0], counts, window, settings.min_overlap)
    refining = _Refining(image, counts, settings.subpixel, frames.count)
    alike = pixels_alike(image[0], counts)
    found = _Columns(frames.count)
    walk = Pass(frames.count, 4 * frames.shape[0] * frames.shape[1], xp is not np, progress)

    def job(start: int, stop: int) -> _Columns:
        chunk = frames.read(start, stop)
        own = masks.of_frames(chunk.frames, start)[:, rows, columns]
        seen = chunk.frames[:, rows, columns]
        values = standardised(seen, own)
        part = _Columns(stop - start)
        part.unreadable = dict(chunk.unreadable)
        if seen.dtype.kind == "f":
            part.non_finite[:] = to_host((~xp.isfinite(seen)).sum(axis=(1, 2)))
        beside = part.rate(*against.planes(values, own), window, alike)
        part.shifts, part.sigma = refining.of(
            values, own, part.peak, np.where(part.on_edge[:, None, None], np.nan, beside)
        )
        return part

    done = 0
    for part in walk.over("measure", job):
        found.take(done, part)
        done += part.score.size
    return ShiftResult(
        shifts=found.shifts,
        score=found.score,
        peak_ratio=found.peak_ratio,
        flags=found.flags(settings),
        fft_shifts=np.full((frames.count, 2), np.nan),
        difference=np.full(frames.count, np.nan),
        non_finite=found.non_finite,
        window=window,
        engine=_ENGINE,
        reference=described,
        notes=(masks.note(float(counts.mean())),),
        unreadable=found.unreadable,
        sigma=found.sigma,
        wrong=found.wrong(settings),
        significance=found.significance,
        tiles=np.full((frames.count, 0, 0), np.nan, np.float32),
    )


class _Refining:
    """Refines whole shifts of so many frames against an image (1, h, w), standardised, of which some pixels count."""

    def __init__(self, image: Array, counts: Array, method: str, count: int) -> None:
        self._method, self._sigma = method, smoothing_for(float(quality.clean_fraction(image)[0]))
        basis = BASES["translation"]
        self._pyramid = Pyramid(levels_of(smoothed(image, self._sigma)[0], basis, counts)[:1], basis, count)

    def of(
        self, frames: Array, counts: Array, peak: NDArray[np.intp], beside: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Shifts and standard errors (n, 2) of frames (n, h, w), of whose planes the values `beside` a peak are known.

        The scores of a plane are of other pixels at every shift, which bends its peak near a mask's edge: their fit is
        where the solver begins, with pixels that count in both, whatever the shift.
        """
        offset, _ = refine(beside, self._method, 1)
        shift = peak + np.nan_to_num(offset)
        motion = np.tile(np.eye(3), (len(frames), 1, 1))
        motion[:, :2, 2] = -shift
        fits = self._pyramid.refined([smoothed(frames, self._sigma)], np.arange(len(frames)), motion, counts)
        with np.errstate(invalid="ignore"):
            near = (np.abs(fits.motion[:, :2, 2] + shift) < _FARTHEST).all(axis=1) & fits.settled
            variance = np.diagonal(fits.covariance, axis1=1, axis2=2)
            sigma = np.sqrt(variance + AT_EDGES**2 / np.maximum(fits.pixels, 1)[:, None])
        if self._method == "gaussian":
            shift = np.where(near[:, None], -fits.motion[:, :2, 2], shift)
        known = np.isfinite(beside[:, 1, 1])[:, None]
        return np.where(known, shift, peak), np.where(known, sigma, np.nan)


class _Columns:
    """What is known of consecutive frames, an entry each."""

    def __init__(self, count: int) -> None:
        self.shifts, self.sigma = np.full((count, 2), np.nan), np.full((count, 2), np.nan)
        self.score, self.peak_ratio = np.full(count, np.nan), np.full(count, np.nan)
        self.significance, self.false_alarm = np.full(count, np.nan), np.full(count, np.nan)
        self.chance_score = np.full(count, np.nan)
        self.peak = np.zeros((count, 2), dtype=np.intp)
        self.on_edge = np.zeros(count, dtype=bool)
        self.non_finite = np.zeros(count, dtype=np.int64)
        self.unreadable: dict[int, str] = {}

    def rate(self, planes: Array, number: Array, window: ShiftWindow, alike: float) -> NDArray[np.float64]:
        """Find the peaks of planes at which a `number` of pixels meet, of which `alike` amount to one.

        Returns the values (n, 3, 3) beside them.
        """
        xp, search = array_namespace(planes), (slice(None), slice(None))
        peaks = find_peaks(planes, search)
        if (nearest := nearest_of_equals(planes, search, (-window.dy_min, -window.dx_min), peaks)) is not None:
            peaks = prefer(peaks, planes, nearest)
        rated = significance(planes, peaks.row, peaks.column, peaks.value, scores=True)
        self.significance, self.false_alarm = rated.z, rated.false_alarm
        self.score, self.peak_ratio = to_host(peaks.value).astype(np.float64), to_host(peaks.ratio())
        self.peak = np.stack([to_host(peaks.row) + window.dy_min, to_host(peaks.column) + window.dx_min], axis=1)
        number = xp.broadcast_to(number, planes.shape)  # of one mask they are known once
        met = to_host(neighbourhoods(number, peaks.row, peaks.column, 0))[:, 0, 0]
        self.chance_score = quality.score_by_chance(met / alike, window)
        beside: NDArray[np.float64] = to_host(neighbourhoods(planes, peaks.row, peaks.column, 1)).astype(np.float64)
        self.on_edge = lacks_neighbours(beside, window)
        return beside

    def take(self, start: int, part: _Columns) -> None:
        """Put the columns of a chunk in their place."""
        stop = start + part.score.size
        for name, column in vars(part).items():
            if name != "unreadable":
                getattr(self, name)[start:stop] = column
        self.unreadable |= part.unreadable

    def wrong(self, settings: Settings) -> NDArray[np.float64]:
        """(T,) probability that the peak of a frame is not its own."""
        words = self._words(settings)
        right = 1 - quality.wrong_by_chance(self.false_alarm, words[quality.UNCERTAIN])
        for word, probability in quality.WRONG.items():
            right = right * np.where(words[word], 1 - probability, 1.0) if word in words else right
        return 1 - right

    def flags(self, settings: Settings) -> tuple[tuple[str, ...], ...]:
        """Words for every frame."""
        words = self._words(settings)
        return tuple(tuple(word for word, column in words.items() if column[t]) for t in range(self.score.size))

    def _words(self, settings: Settings) -> dict[str, NDArray[np.bool_]]:
        """Frames (T,) that each word is said of."""
        known = np.isfinite(self.score)
        ambiguous = self.peak_ratio < quality.AMBIGUOUS_RATIO
        unreadable = np.zeros(known.size, dtype=bool)
        unreadable[list(self.unreadable)] = True
        with np.errstate(invalid="ignore"):
            uncertain = self.score < self.chance_score
            uncertain |= (self.false_alarm > MAX_FALSE_ALARM) & ~ambiguous
            sure = known & ~uncertain & ~ambiguous & ~self.on_edge & np.isfinite(self.shifts).all(axis=1)
            moves = self.shifts[sure] if 2 * sure.sum() > known.sum() else self.shifts[:0]
            uncertain |= ~(self.sigma <= settings.sigma_limit(moves)).all(axis=1)
        return {
            quality.EDGE: known & self.on_edge,
            quality.AMBIGUOUS: known & ambiguous,
            quality.UNCERTAIN: known & uncertain,
            quality.FLAT: ~known & ~unreadable,
            # Pixels that are no numbers are masked like others: no reason to look at a frame.
            quality.UNREADABLE: unreadable,
        }


def _problem(settings: Settings) -> str | None:
    """Why these settings cannot go with masks."""
    if settings.normalization != "zncc":
        return f"normalization {settings.normalization!r} takes no mask: use 'zncc'"
    if settings.subpixel not in _SUBPIXEL:
        return f"sub-pixel method {settings.subpixel!r} takes no mask: use one of {', '.join(_SUBPIXEL)}"
    if settings.prefilter.name:
        return "a prefilter would smear what is masked into what counts: leave one of them out"
    if settings.smooth_time > 1:
        return "smooth_time takes no mask: leave one of them out"
    if settings.engine not in ("auto", _ENGINE):
        return f"engine {settings.engine!r} takes no mask: use 'auto' or 'fft'"
    return None


def _reference(frames: Frames, reference: str | int | Array, masks: Masks, xp: Any) -> tuple[Array, Array, str]:
    """Image (Y, X) in float64, which of its pixels count, and what it is in words."""
    refusal = f"reference {reference!r} takes no mask: use first, last, a frame number or an image"
    image, number, described = read_reference(frames, reference, refusal)
    counts = masks.of_reference(image, number)
    return xp.where(counts, image, 0.0).astype(np.float64), counts, described
