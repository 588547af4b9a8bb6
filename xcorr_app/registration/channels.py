"""Shifts of one stack from several of its channels: each is measured, and trusted ones are averaged by their errors.

Where a shift's errors are normal, the mean weighted by their inverse squares is the most likely shift, as the highest
place of the channels' correlation planes would be, added by the same weights. Frames that no channel alone can tell are
measured by all of them in one picture, where they are compared with a single image: noise of different channels is
independent, so the log-likelihood of a shift is the sum of theirs, and that of a channel is its correlation times the
score that the scene reaches in it, the share of its variance that is no noise (Knapp and Carter 1976, doi
10.1109/TASSP.1976.1162830). The correlation of pictures in which channels stand beside each other, farther apart than
shifts reach, is that sum. A peak that each of them hides stands out in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration import quality
from xcorr_app.registration.masked.estimate import estimate_masked
from xcorr_app.registration.masked.planes import standardised
from xcorr_app.registration.masked.rules import Masks
from xcorr_app.registration.measuring.measured import spread
from xcorr_app.registration.quality import signal_fraction
from xcorr_app.registration.results.results import ShiftResult
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.solver.whole_frames import smoothed, smoothing_for
from xcorr_app.registration.stack.frames import SINGLE, ArrayFrames, Chunk, Frames, FramesOver, PickedFrames
from xcorr_app.registration.stack.prefilter import Contrast
from xcorr_app.registration.stack.preparation import prepare
from xcorr_app.registration.weights.weighing import weighted

_SAMPLED_FRAMES = 16
"""Frames of a channel whose noise is looked at."""


@dataclass(frozen=True)
class Channel:
    """A channel and what it tells alone."""

    frames: Frames
    reference: str | int | Array
    result: ShiftResult


@dataclass(frozen=True)
class _Compared(FramesOver):
    """Frames of a channel as they are compared: of mean zero and variance one, smoothed as their noise asks for."""

    settings: Settings
    sigma: float
    """Of the Gaussian, in pixels."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the part that is measured."""
        return self.settings.measured_shape(self.source.shape)

    def read(self, start: int, stop: int) -> Chunk:
        """Read frames and make them ready; flat ones are zero."""
        chunk = self.source.read(start, stop)
        return replace(chunk, frames=_standard(smoothed(_standard(prepare(chunk, self.settings).frames), self.sigma)))


def _standard(images: Array) -> Array:
    return standardised(images, array_namespace(images).ones(images.shape, bool))


@dataclass(frozen=True)
class _SideBySide(FramesOver):
    """Frames of channels beside each other, of which the source is the first."""

    others: tuple[_Compared, ...]
    heights: tuple[float, ...]
    """What each is multiplied by: the root of its weight."""
    between: int
    """Columns of NaN beside each."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of all of them."""
        rows, columns = self.source.shape
        return rows, len(self.heights) * (columns + self.between)

    def read(self, start: int, stop: int) -> Chunk:
        """Read all channels."""
        chunks = [each.read(start, stop) for each in (self.source, *self.others)]
        xp, beside = array_namespace(chunks[0].frames), ((0, 0), (0, 0), (0, self.between))
        parts = [
            xp.pad(height * chunk.frames, beside, constant_values=np.nan)
            for height, chunk in zip(self.heights, chunks, strict=True)
        ]
        unreadable = {number: why for chunk in chunks for number, why in chunk.unreadable.items()}
        return Chunk(start, xp.concatenate(parts, axis=2), unreadable)


def measured_together(
    channels: Sequence[Channel], asked: NDArray[np.bool_], settings: Settings, xp: Any
) -> ShiftResult | None:
    """Measure the frames `asked` for (T,) by all channels, a result of these alone; None where that cannot be.

    It needs two channels that were compared as they are, or by their local contrast, with one and the same image: the
    first or last frame, a frame by its number, or an image.
    """
    one_way = [each for each in channels if each.result.contrast is not None and np.isfinite(each.result.shifts).any()]
    described = {each.result.reference for each in one_way}
    if settings.normalization != "zncc" or len(one_way) < 2 or len(described) != 1:
        return None
    if isinstance(one_way[0].reference, str) and one_way[0].reference not in SINGLE:
        return None
    some = spread(np.flatnonzero(asked), _SAMPLED_FRAMES).tolist()
    compared, images, heights = list[_Compared](), list[_Compared](), list[float]()
    for each in one_way:
        of_channel = replace(settings, contrast=each.result.contrast or settings.contrast)
        given = weighted(each.frames, each.reference, of_channel)
        noisy = [prepare(given.frames.read(number, number + 1), of_channel).frames for number in some]
        clean = float(np.median([signal_fraction(_standard(image))[0] for image in noisy]))
        heights.append(np.sqrt(clean))
        compared.append(_Compared(given.frames, of_channel, smoothing_for(clean)))
        if not isinstance(given.reference, (str, int, np.integer)):
            images.append(replace(compared[-1], source=ArrayFrames(given.reference[None])))
    window = settings.window(compared[0].source.shape)
    reach = max(window.dy_max, -window.dy_min), max(window.dx_max, -window.dx_min)
    number = 0 if images else int(re.findall(r"\d+", described.pop())[-1])
    beside, reference = (
        _SideBySide(parts[0], tuple(parts[1:]), tuple(heights), reach[1]) for parts in (compared, images or compared)
    )
    plain = Settings(
        max_shift=reach,
        contrast=Contrast(),
        min_overlap=settings.min_overlap,
        min_score=settings.min_score,
        max_sigma=settings.max_sigma,
    )
    wanted = PickedFrames(beside, tuple(np.flatnonzero(asked).tolist()))
    return estimate_masked(wanted, reference.read(number, number + 1).frames[0], plain, Masks("finite"), xp)


_ONE_FRAME = re.compile(r"frame \(?(?P<number>\d+)\)?$")
"""How references are described, of templates as well, by whose shifts one frame has none."""
_APART, _SIGMAS = 0.25, 5.0
"""Channels disagree where they are farther apart than this many pixels, and than so many of their standard errors."""
_TAKEN = ("shifts", "sigma", "score", "peak_ratio", "significance", "wrong", "fft_shifts", "difference")
"""Columns that come from all channels together."""
_EXACT = 1e-4
"""Smallest standard error, in pixels, that is believed: a frame against itself has none."""


def together(channels: Sequence[Channel], names: Sequence[str], settings: Settings, xp: Any) -> ShiftResult:
    """Make one result of channels, whose names are given, by their results and by all of them in one picture."""
    result = combined([channel.result for channel in channels], names)
    asked = ~result.trusted
    summed = measured_together(channels, asked, settings, xp) if len(channels) > 1 and asked.any() else None
    if summed is None or not summed.trusted.any():
        return result
    taken = np.flatnonzero(asked)[summed.trusted]
    note = (
        f"{taken.size} of {asked.size} frames, which no channel alone could tell, were measured by the sum of the "
        "channels' correlation planes."
    )
    found = replace(result, notes=(result.notes[0], note, *result.notes[1:]))
    for name in _TAKEN:
        columns = getattr(result, name)
        if columns is not None:
            columns = columns.copy()
            columns[taken] = getattr(summed, name)[summed.trusted]
            found = replace(found, **{name: columns})
    flags = dict(zip(np.flatnonzero(asked).tolist(), summed.flags, strict=True))
    kept = set(taken.tolist())
    return replace(found, flags=tuple(flags[t] if t in kept else words for t, words in enumerate(result.flags)))


def combined(results: Sequence[ShiftResult], names: Sequence[str]) -> ShiftResult:
    """Make one result of those of several channels, whose names are given.

    A frame that no channel trusts has the shift and the flags of the one with the highest score. Where trusted channels
    disagree it is flagged ``inconsistent``. Checks by the FFT are those of the first channel.
    """
    if len(results) == 1:
        return results[0]
    results = [results[0], *(_from_the_same_frame(other, results[0]) for other in results[1:])]
    trusted = np.stack([result.trusted for result in results])
    shifts = np.stack([result.shifts for result in results])
    sigma = np.maximum(np.stack([np.nan_to_num(result.sigma, nan=np.inf, posinf=np.inf) for result in results]), _EXACT)
    score = np.stack([result.score for result in results])
    weights = np.where(trusted[:, :, None], 1 / sigma**2, 0.0)
    # Standard errors may be unknown; then trusted channels count alike.
    weights = np.where((weights.sum(axis=0) > 0)[None], weights, trusted[:, :, None].astype(float))
    total = weights.sum(axis=0)
    known = total > 0
    mean = (weights * np.nan_to_num(shifts)).sum(axis=0) / np.where(known, total, 1.0)
    best = np.argmax(np.where(np.isfinite(score), score, -np.inf), axis=0)
    frames = np.arange(shifts.shape[1])
    disagree = _disagree(shifts, sigma, trusted)
    flags = tuple(
        _flags([result.flags[t] for result in results], int(best[t]), bool(trusted[:, t].any()), bool(disagree[t]))
        for t in frames
    )
    first = results[0]
    note = f"Measured on {len(results)} channels ({', '.join(names)}), averaged by their standard errors."
    return replace(
        first,
        shifts=np.where(known, mean, shifts[best, frames]),
        sigma=np.where(
            known, np.sqrt(1 / np.where(known, total, 1.0)), np.stack([r.sigma for r in results])[best, frames]
        ),
        score=score[best, frames],
        peak_ratio=np.stack([result.peak_ratio for result in results])[best, frames],
        significance=np.stack([result.significance for result in results])[best, frames],
        wrong=_wrong(results, best),
        non_finite=np.stack([result.non_finite for result in results]).max(axis=0),
        flags=flags,
        difference=first.difference,
        notes=tuple(dict.fromkeys([note, *(note for result in results for note in result.notes)])),
        unreadable={
            t: reason for result in results for t, reason in result.unreadable.items() if not trusted[:, t].any()
        },
    )


def _wrong(results: Sequence[ShiftResult], best: NDArray[np.intp]) -> NDArray[np.float64] | None:
    """Probability (T,) that peaks are not those of their frames, of the channel with the highest score."""
    known = [result.wrong for result in results if result.wrong is not None]
    return np.stack(known)[best, np.arange(best.size)] if len(known) == len(results) else None


def _from_the_same_frame(result: ShiftResult, first: ShiftResult) -> ShiftResult:
    """Shifts onto the frame that the first channel was compared with, where a channel did not show that one."""
    both = result.trusted & first.trusted
    ours, theirs = (_ONE_FRAME.search(each.reference) for each in (result, first))
    if ours is None or theirs is None or int(ours["number"]) == int(theirs["number"]) or not both.any():
        return result
    apart = np.median((first.shifts - result.shifts)[both], axis=0)
    return replace(result, shifts=result.shifts + apart, fft_shifts=result.fft_shifts + apart)


def _disagree(shifts: NDArray[np.float64], sigma: NDArray[np.float64], trusted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(T,) whether two trusted channels are too far apart."""
    found = np.zeros(shifts.shape[1], dtype=bool)
    for i in range(len(shifts)):
        for j in range(i):
            both = trusted[i] & trusted[j]
            distance = np.abs(np.nan_to_num(shifts[i]) - np.nan_to_num(shifts[j]))
            error = np.hypot(sigma[i], sigma[j])
            found |= both & (distance > np.maximum(_APART, _SIGMAS * error)).any(axis=1)
    return found


def _flags(of_channels: list[tuple[str, ...]], best: int, trusted: bool, disagree: bool) -> tuple[str, ...]:
    if not trusted:
        return of_channels[best]
    remarks = dict.fromkeys(word for flags in of_channels if quality.is_trusted(flags) for word in flags)
    return (*((quality.INCONSISTENT,) if disagree else ()), *remarks)
