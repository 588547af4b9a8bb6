"""Frames of a stack as they are compared; where a device measures all of them at once, prepared once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import ArrayFrames, Chunk, Frames, PickedFrames
from xcorr_app.registration.stack.passes import Pass
from xcorr_app.registration.stack.preparation import Prepared, prepare

AT_ONCE = 8
"""Frames that are looked at together."""


class PreparedFrames:
    """Reads frames and prepares them; `xp` is the kind of array that they are."""

    def __init__(self, frames: Frames, walk: Pass, settings: Settings, xp: Any) -> None:
        self._frames, self._walk, self._settings, self._xp = frames, walk, settings, xp
        self._kept: tuple[Chunk, Prepared] | None = None

    def at_hand(self) -> Prepared | None:
        """Return all frames, prepared once, where a device measures them at once and this takes no memory; else None.

        Few of any kind, or as many as there are of integers that are measured as they are stored.
        """
        if self._xp is np or not (self._frames.count <= AT_ONCE or self._as_stored):
            return None
        if self._kept is None:
            chunk = self._frames.read(0, self._frames.count)
            self._kept = chunk, prepare(chunk, self._settings)
            if self._as_stored and self._settings.roi is None and isinstance(self._frames, ArrayFrames):
                self._kept[1].vary = frozenset(self._frames.vary)
        return self._kept[1]

    def read(self, start: int, stop: int) -> tuple[Chunk, Prepared]:
        """Frames as read and as prepared."""
        if stop - start == self._frames.count and self.at_hand() is not None and self._kept is not None:
            return self._kept
        chunk = self._frames.read(start, stop)
        return chunk, prepare(chunk, self._settings)

    def usable(self, numbers: tuple[int, ...]) -> list[Array]:
        """Those of these frames that are usable, prepared.

        On a device at once, where every step costs the host as much time as many frames take.
        """
        if self._xp is np:
            prepared = [prepare(self._frames.read(number, number + 1), self._settings) for number in numbers]
            return [one.frames for one in prepared if one.usable[0]]
        everything = self.at_hand()
        if everything is not None and everything.is_judged:
            return [everything.frames[i : i + 1] for i in numbers if everything.usable[i]]
        some = prepare(PickedFrames(self._frames, numbers).read(0, len(numbers)), self._settings)
        rows = np.flatnonzero(some.usable)
        return [take(some.frames, rows)] if rows.size else []

    @property
    def _as_stored(self) -> bool:
        frames, settings = self._frames, self._settings
        is_plain = settings.prefilter.name is None and settings.contrast.sigma is None
        is_held = isinstance(frames, ArrayFrames) and self._walk.images_at_once == frames.count
        return is_plain and is_held and frames.dtype.kind in "iu"


def cropped(images: Array, part: tuple[slice, slice] | None) -> Array:
    """Part (n, h, w) of images in which all of them are known; the images themselves where that is everywhere."""
    return images if part is None else images[:, *part]


def take(frames: Array, rows: NDArray[np.intp]) -> Array:
    """Rows of a stack; the stack itself, not a copy, where all are taken."""
    return frames if rows.size == frames.shape[0] else frames[rows]
