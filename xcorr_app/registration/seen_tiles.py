"""The tiles of the few frames that are looked at, to see whether a stack moves as one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.tiles import Look, look


@dataclass(frozen=True)
class Seen:
    """Frames whose tiles are looked at, by number, with the images they were compared with."""

    numbers: NDArray[np.intp]
    images: Array
    frames: Array
    shifts: NDArray[np.float64]

    def judged(self) -> tuple[NDArray[np.intp], Look]:
        """Their numbers, and what their tiles say."""
        return self.numbers, look(self.images, self.frames, self.shifts)

    @staticmethod
    def together(seen: list[Seen], *, shared: bool) -> list[tuple[NDArray[np.intp], Look]]:
        """The same of several, at once where they can be; all compared with the same image where `shared`."""
        if not seen:
            return []
        xp = array_namespace(seen[0].frames)
        if not shared and any(one.images.shape[0] != one.frames.shape[0] for one in seen):
            return [one.judged() for one in seen]
        images = seen[0].images if shared else xp.concatenate([one.images for one in seen])
        frames = xp.concatenate([one.frames for one in seen])
        numbers, shifts = (np.concatenate(parts) for parts in zip(*((s.numbers, s.shifts) for s in seen), strict=True))
        return [Seen(numbers, images, frames, shifts).judged()]
