"""Frames that no channel alone can tell, by the sum of the channels' correlation planes.

Noise of different channels is independent, so the log-likelihood of a shift is the sum of theirs. For frames as noisy
as those in question that of a channel is its plane, its frequencies weighted as in
:mod:`xcorr_app.correlation.weighting`, times the score that the scene reaches in it: the root of the product of both
images' shares of the variance that is no noise (Knapp and Carter 1976, doi 10.1109/TASSP.1976.1162830). A peak that
each plane hides stands out in the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.peaks import neighbourhoods
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.runtime.arrays import Array, to_host
from xcorr_app.registration import quality
from xcorr_app.registration.measuring.match import ChunkResult, Compared, Match
from xcorr_app.registration.measuring.matcher import Matcher
from xcorr_app.registration.measuring.measured import Measured
from xcorr_app.registration.measuring.rated_peaks import Planes
from xcorr_app.registration.measuring.references import FixedImage
from xcorr_app.registration.measuring.stack_weighting import StackWeighting
from xcorr_app.registration.results.results import ShiftResult
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import Chunk, Frames
from xcorr_app.registration.stack.passes import Pass
from xcorr_app.registration.stack.preparation import NoUsableFrameError, PreparedFrames, prepare, take
from xcorr_app.registration.standard_error.peak_shapes import PeakShapes
from xcorr_app.registration.standard_error.uncertainty import peak_shapes
from xcorr_app.registration.weights.weighing import weighted

_SAMPLED_FRAMES = 64
"""Frames of which the noise is looked at."""
_MIN_CLEAN = 1e-4


@dataclass(frozen=True)
class Channel:
    """A channel and what it tells alone."""

    frames: Frames
    reference: str | int | Array
    result: ShiftResult


@dataclass(frozen=True)
class Together:
    """What the sum of planes tells of every frame; entries of frames that were not `asked` mean nothing."""

    measured: Measured
    flags: tuple[tuple[str, ...], ...]
    taken: NDArray[np.bool_]
    """(T,) whether a frame was asked for and is to be trusted."""


def measured_together(
    channels: Sequence[Channel], asked: NDArray[np.bool_], settings: Settings, xp: Any
) -> Together | None:
    """Measure the frames `asked` (T,) by the sum of planes; None where planes cannot be added.

    That needs two channels that were compared as they are, or by their local contrast, with one and the same image:
    the first or last frame, a frame by its number, or an image.
    """
    one_way = [each for each in channels if each.result.contrast is not None and np.isfinite(each.result.shifts).any()]
    if settings.normalization != "zncc" or len({each.result.reference for each in one_way}) != 1:
        return None
    count, shape = one_way[0].frames.count, one_way[0].frames.shape
    walk = Pass(count, len(one_way) * shape[0] * shape[1], xp is not np)
    compared = [_Compared.of(each, asked, settings, walk, xp) for each in one_way]
    parts = [each for each in compared if each is not None]
    if len(parts) < 2:
        return None
    adder = _SumOfPlanes(parts, asked, xp)
    columns, shapes = Measured.empty(count), PeakShapes.empty(count)
    for found in walk.over("channels", lambda start, stop: adder.measured(start, stop, asked)):
        if found is not None:
            frames = slice(found.start, found.start + found.columns.usable.size)
            columns.put(frames, found.columns)
            shapes.put(frames, found.shapes)
    columns.sigma = shapes.standard_errors(columns.significance)
    flags = columns.flags(settings)
    good = np.array([quality.is_trusted(words) for words in flags]) & np.isfinite(columns.shifts).all(axis=1)
    return Together(columns, flags, asked & good)


@dataclass(frozen=True)
class _Compared:
    """How the frames of a channel are compared."""

    prepared: PreparedFrames
    image: Array
    kernel: NDArray[np.float64] | None
    window: ShiftWindow
    settings: Settings

    @classmethod
    def of(
        cls, channel: Channel, asked: NDArray[np.bool_], settings: Settings, walk: Pass, xp: Any
    ) -> _Compared | None:
        """None where there is no single image to compare with."""
        contrast = channel.result.contrast or settings.contrast
        settings = replace(settings, contrast=contrast, engine="fft", kernel_options=None)
        frames = weighted(channel.frames, channel.reference, settings).frames
        prepared = PreparedFrames(frames, walk, settings, xp)
        image = _image(channel.reference, prepared, frames.count, settings)
        if image is None:
            return None
        kernel = StackWeighting(frames, prepared, settings, xp).kernel(FixedImage(image))
        return cls(prepared, image, kernel, settings.window(frames.shape), settings)

    def clean(self, matcher: Matcher, asked: NDArray[np.bool_]) -> float:
        """Share of the variance of frames that is no noise: the median of some that are asked for."""
        numbers = np.flatnonzero(asked)
        numbers = numbers[np.unique(np.linspace(0, numbers.size - 1, min(numbers.size, _SAMPLED_FRAMES)).astype(int))]
        shares = [
            float(share)
            for some in self.prepared.usable(tuple(numbers.tolist()))
            for share in matcher.clean(matcher.prepare_reference(some).values)
        ]
        return float(np.median(shares)) if shares else 0.0


@dataclass(frozen=True)
class _Summed(Planes):
    """Weighted means of the planes of channels."""

    parts: tuple[Planes, ...]
    weights: tuple[float, ...]

    @classmethod
    def of(cls, parts: Sequence[Planes], weights: Sequence[float]) -> _Summed:
        searched, scores = (
            sum(weight * planes for weight, planes in zip(weights, of_parts, strict=True))
            for of_parts in ([part.searched for part in parts], [part.scores for part in parts])
        )
        one = parts[0]
        others = one.overlap, one.references, one.of_references
        return cls(one.values, searched, scores, *others, tuple(parts), tuple(weights))


class _SumOfPlanes(Matcher):
    """Adds the planes of channels and finds the peaks of the sum as those of one channel are found."""

    def __init__(self, channels: Sequence[_Compared], asked: NDArray[np.bool_], xp: Any) -> None:
        self._channels, self.window = channels, channels[0].window

        def matcher(channel: _Compared, kernel: NDArray[np.float64] | None) -> Matcher:
            return Matcher(channel.image.shape, self.window, channel.settings, np.float32, "fft", kernel, xp)

        # None where all planes are scores.
        kernel = next((each.kernel for each in channels if each.kernel is not None), None)
        super().__init__(channels[0].image.shape, self.window, channels[0].settings, np.float32, "fft", kernel, xp)
        self._matchers = [matcher(each, each.kernel) for each in channels]
        self._references = [
            one.prepare_reference(each.image[None]) for one, each in zip(self._matchers, channels, strict=True)
        ]
        clean = [
            [float(reference.clean[0]), each.clean(one, asked)]
            for one, reference, each in zip(self._matchers, self._references, channels, strict=True)
        ]
        heights = np.sqrt(np.maximum(clean, _MIN_CLEAN).prod(axis=1))
        self._weights: list[float] = (heights / heights.sum()).tolist()

    def measured(self, start: int, stop: int, asked: NDArray[np.bool_]) -> ChunkResult | None:
        """Measure those of consecutive frames that are asked for and that all channels show."""
        if not asked[start:stop].any():
            return None
        read = [each.prepared.read(start, stop)[1] for each in self._channels]
        rows = np.flatnonzero(asked[start:stop] & np.all([each.usable for each in read], axis=0))
        result = ChunkResult.of(start, read[0], {}, (0, 0))
        if rows.size == 0:
            return result
        parts = [
            one.planes(reference, take(each.frames, rows))
            for one, reference, each in zip(self._matchers, self._references, read, strict=True)
        ]
        match, shape = self.match(_Summed.of(parts, self._weights)), parts[0].values.shape[1:]
        found = Compared(match, np.zeros(rows.size), parts[0].values, self._shapes(parts, match))
        result.fill(rows, found, np.zeros(rows.size), shape, self.window, self._channels[0].settings)
        # A weighted mean of independent scores scatters less than one of them.
        overlap = np.prod(np.maximum(np.array(shape) - np.abs(match.peak), 0), axis=1)
        by_chance = quality.score_by_chance(overlap / np.square(self._weights).sum(), self.window)
        result.columns.chance_score[rows], result.columns.score_limit[rows] = by_chance, 0.0
        return result

    def _shapes(self, parts: Sequence[Planes], match: Match) -> PeakShapes:
        """Shapes of the peaks of the sum: slopes of independent planes add by their squares, all else as it is."""
        found = []
        for part, reference in zip(parts, self._references, strict=True):
            near, around = (
                to_host(neighbourhoods(planes, *self._places(match.peak), radius)).astype(np.float64)
                for planes, radius in ((part.searched, 1), (part.scores, 2))
            )
            found.append(peak_shapes(reference.slopes, part.values, match.peak, match.shift, near, around))
        weights = np.array(self._weights)
        return PeakShapes(
            np.tensordot(weights**2, [each.scatter for each in found], 1),
            np.tensordot(weights, [each.hessian for each in found], 1),
            np.tensordot(weights, [each.height for each in found], 1),
            np.tensordot(weights, [each.quartic for each in found], 1),
        )

    def _on_common_overlap(
        self, near: NDArray[np.float64], planes: Planes, peak: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """Values around peaks, each channel's of the parts that overlap there."""
        assert isinstance(planes, _Summed)  # noqa: S101 - it matches nothing else
        summed = np.zeros_like(near)
        for part, one, weight in zip(planes.parts, self._matchers, planes.weights, strict=True):
            own = to_host(neighbourhoods(part.searched, *self._places(peak), 1)).astype(np.float64)
            summed += weight * one._on_common_overlap(own, part, peak)
        return summed

    def _places(self, peak: NDArray[np.intp]) -> tuple[Array, Array]:
        """Rows and columns of peaks in the planes that are searched."""
        row, column = self._xp.asarray((peak - (self._searched.dy_min, self._searched.dx_min)).T)
        return row, column


def _image(reference: str | int | Array, frames: PreparedFrames, count: int, settings: Settings) -> Array | None:
    """The prepared image that all of so many frames are compared with; None where there is no such one."""
    if not isinstance(reference, (str, int, np.integer)):
        prepared = prepare(Chunk(0, reference[None], {}), settings)
        return prepared.frames[0] if prepared.usable[0] else None
    candidates = {"first": range(count), "last": range(count)[::-1]}
    if not isinstance(reference, str):
        candidates[str(reference)] = range(count)[int(reference) % count :][:1]
    try:
        return frames.first_usable(candidates.get(str(reference), range(0)))[1]
    except NoUsableFrameError:
        return None
