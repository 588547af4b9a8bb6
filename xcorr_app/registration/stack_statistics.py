"""Images made of a whole stack, frame by frame or strip by strip: sums, order statistics, first usable frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.frames import Frames
from xcorr_app.registration.passes import Pass
from xcorr_app.registration.preparation import prepare
from xcorr_app.registration.references import AlignedMeanOfOthers, MeanOfOthers, MedianOfOthers, move_for_template
from xcorr_app.registration.settings import Settings

_STRIP_BYTES = 1 << 28
"""Memory for one strip of all frames while a median is taken."""


class NoUsableFrameError(ArgumentError):
    """No frame can be a reference."""

    def __init__(self) -> None:
        super().__init__("No frame can serve as a reference: each is unreadable or has the same value everywhere.")


@dataclass(frozen=True)
class Statistics:
    """Takes statistics over the prepared frames of a stack."""

    frames: Frames
    walk: Pass
    settings: Settings
    xp: Any

    def mean_of_others(self) -> MeanOfOthers:
        """Sum of all usable frames, ready to leave one out."""
        usable = np.zeros(self.frames.count, dtype=bool)

        def job(start: int, stop: int) -> tuple[int, Array, NDArray[np.bool_]]:
            prepared = prepare(self.frames.read(start, stop), self.settings)
            return start, prepared.frames[prepared.usable].sum(axis=0, dtype=np.float64), prepared.usable

        total: Any = 0.0
        for start, part, these in self.walk.over("mean", job):
            total = total + part
            usable[start : start + these.size] = these
        return MeanOfOthers(total, int(usable.sum()), usable)

    def aligned_mean_of_others(self, shifts: NDArray[np.float64], took_part: NDArray[np.bool_]) -> AlignedMeanOfOthers:
        """Sum of the frames that take part, each moved by its shift, ready to leave one out."""

        def job(start: int, stop: int) -> Array:
            rows = np.flatnonzero(took_part[start:stop])
            if rows.size == 0:
                return 0.0
            frames = prepare(self.frames.read(start, stop), self.settings).frames[rows]
            return move_for_template(frames, shifts[start:stop][rows]).sum(axis=0, dtype=np.float64)

        total: Any = 0.0
        for part in self.walk.over("template", job):
            total = total + part
        return AlignedMeanOfOthers(total, int(took_part.sum()), took_part, shifts)

    def median_of_others(self) -> MedianOfOthers:
        """Middle order statistics of every pixel over all usable frames, strip by strip of the measured part."""
        frames = self.frames
        rows, columns = self.settings.measured_shape(frames.shape)
        height = max(1, min(rows, _STRIP_BYTES // (frames.count * columns * frames.dtype.itemsize)))
        parts: list[tuple[Array, Array, Array]] = []
        usable = np.zeros(frames.count, dtype=bool)
        for top in range(0, rows, height):
            strip = slice(top, min(top + height, rows))

            def job(start: int, stop: int, strip: slice = strip) -> tuple[int, Array, NDArray[np.bool_]]:
                prepared = prepare(frames.read(start, stop), self.settings)
                # The strip first: a strip of the selected frames would be a view that keeps all their rows alive.
                return start, prepared.frames[:, strip][prepared.usable], prepared.usable

            pieces = []
            for start, piece, these in self.walk.over("median", job):
                pieces.append(piece)
                usable[start : start + these.size] = these
            values = self.xp.concatenate(pieces)
            count = values.shape[0]
            if count == 0:
                continue
            half = (count - 1) // 2
            ranks = (max(half - 1, 0), half, min(half + 1, count - 1)) if count % 2 else (half, half, half + 1)
            values.partition(sorted(set(ranks)), axis=0)
            parts.append((values[ranks[0]].copy(), values[ranks[1]].copy(), values[ranks[2]].copy()))
        if not parts:
            raise NoUsableFrameError
        low, middle, high = (self.xp.concatenate(column) for column in zip(*parts, strict=True))
        return MedianOfOthers(low, middle, high, bool(usable.sum() % 2), usable)

    def usable_frame(self, candidates: range) -> tuple[int, Array]:
        """First of the candidates that is usable, and its prepared image."""
        for number in candidates:
            prepared = prepare(self.frames.read(number, number + 1), self.settings)
            if prepared.usable[0]:
                return number, prepared.frames[0]
        raise NoUsableFrameError
