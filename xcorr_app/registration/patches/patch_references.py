"""The image that the patches of each frame are compared with."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration import quality
from xcorr_app.registration.motion.smoothed_frames import finite
from xcorr_app.registration.moving.apply import apply_shifts
from xcorr_app.registration.results.doubtful_frames import applied_shifts
from xcorr_app.registration.stack.frames import Frames
from xcorr_app.registration.stack.passes import Pass

LEFT_OUT = ("mean", "median", "template")
"""References of which the frame that is measured takes no part."""
REFERENCES = ("first", "last", *LEFT_OUT)
NO_MATTER = {quality.INCONSISTENT, quality.LOW_SCORE, quality.UNCERTAIN, quality.AMBIGUOUS}
"""What a frame whose parts move otherwise is flagged with when it is measured as one."""

Moved = Callable[[int], tuple[Array, Array]]


class References:
    """One image for all, or for each frame the mean of all aligned frames but itself."""

    def __init__(
        self, image: Array, others: tuple[Array, Array] | None = None, moved: Moved = lambda _: (None, None)
    ) -> None:
        self.image, self._others, self._moved = image, others, moved

    @property
    def shared(self) -> bool:
        """Whether all frames have the same."""
        return self._others is None

    def of(self, t: int) -> Array | None:
        """The image for frame t, None where it is that of all."""
        if self._others is None:
            return None
        xp = array_namespace(self.image)
        total, count = self._others
        values, seen = self._moved(t)
        count = count - seen
        return xp.where(count > 0, (total - values) / xp.maximum(count, 1), self.image)


def references_of(
    frames: Frames,
    reference: str | int | Array,
    shifts: NDArray[np.float64],
    flags: tuple[tuple[str, ...], ...],
    xp: Any,
) -> References:
    """References of frames whose shifts (T, 2) as a whole are known, and flagged by words."""
    if not isinstance(reference, (str, int, np.integer)):
        return References(reference)
    if reference not in LEFT_OUT:
        # As whole frames are measured: the first, or last, that can be a reference.
        possible = [t for t, words in enumerate(flags) if not {quality.FLAT, quality.UNREADABLE} & set(words)] or [0]
        number = possible[0 if reference == "first" else -1] if isinstance(reference, str) else reference
        return References(frames.read(int(number) % frames.count, int(number) % frames.count + 1).frames[0])
    usable = np.array([not set(words) - NO_MATTER for words in flags]) & np.isfinite(shifts).all(axis=1)
    shifts = applied_shifts(shifts, usable, "apply")

    def moved(t: int) -> tuple[Array, Array]:
        if not usable[t]:
            return xp.zeros(frames.shape, np.float32), xp.zeros(frames.shape, np.float32)
        frame = finite(frames.read(t, t + 1).frames[0])
        values = apply_shifts(frame[None], shifts[t : t + 1], order=3, cval=np.nan)[0]
        seen = xp.isfinite(values)
        return xp.where(seen, values, 0.0), seen.astype(np.float32)

    def of_range(start: int, stop: int) -> tuple[Array, Array]:
        total, count = moved(start)
        for t in range(start + 1, stop):
            values, seen = moved(t)
            total, count = total + values, count + seen
        return total, count

    walk = Pass(frames.count, frames.shape[0] * frames.shape[1], xp is not np)
    total, count = reduce(_added, walk.over("template", of_range))
    whole = xp.where(count > 0, total / xp.maximum(count, 1), 0.0)
    return References(whole, (total, count), moved)


def _added(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    return one[0] + other[0], one[1] + other[1]
