"""Frames that no channel alone can tell, by all channels beside each other in one picture.

Noise of different channels is independent, so the log-likelihood of a shift is the sum of theirs: that of a channel is
its correlation times the score that the scene reaches in it, the share of its variance that is no noise (Knapp and
Carter 1976, doi 10.1109/TASSP.1976.1162830). The correlation of pictures in which channels stand beside each other,
farther apart than shifts reach, is that sum. A peak that each of them hides stands out in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace
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
