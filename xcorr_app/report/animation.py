"""A short looping movie of a stack before and after: its frames one below the other in a JPEG, which the page plays.

A style sheet shows one frame after the other. An animated WebP of the same frames takes twenty times as long to encode.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from xcorr_app.report.encoding import jpeg

if TYPE_CHECKING:
    from numpy.typing import NDArray

_QUALITIES = (75, 50, 30)
_HOPELESS = 2.5
"""Times the size allowed from which a lower quality alone would not do."""
_MILLISECONDS = 3600
"""That a whole movie takes, unless it has few frames."""
_LONGEST = 400
_GAP = 4
"""Columns between the two sides."""
_ENOUGH = 8
"""Frames below which a movie rather gets smaller."""
_SMALLEST = 24
"""Rows or columns below which it does not."""


@dataclass(frozen=True)
class Film:
    """Frames of a movie, one below the other in one picture."""

    data: bytes
    """JPEG."""
    frames: int
    shape: tuple[int, int]
    """Rows and columns of one frame, the two sides and what is between them."""

    @property
    def seconds(self) -> float:
        """That all frames together are shown for."""
        return min(_MILLISECONDS, _LONGEST * self.frames) / 1000


def film(frames: NDArray[np.uint8], limit: int) -> Film:
    """Film of frames (N, 2, y, x), the first of each pair at the left.

    It loses quality, then every other frame while there are many, then half of its rows and columns, until it has at
    most `limit` bytes or is as small as can be.
    """
    while True:
        smaller = _smaller(frames)
        gap = np.full((len(frames), frames.shape[2], _GAP), 128, np.uint8)
        strip = np.concatenate([frames[:, 0], gap, frames[:, 1]], axis=2)
        for quality in _QUALITIES:
            data = jpeg(strip.reshape(-1, strip.shape[2]), quality)
            if len(data) <= limit:
                return Film(data, len(frames), strip.shape[1:])
            if len(data) > _HOPELESS * limit and smaller is not None:
                break
        if smaller is None:
            return Film(data, len(frames), strip.shape[1:])
        frames = smaller


def _smaller(frames: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
    """Half of the frames, or frames of a quarter of their pixels; None where neither leaves anything to see."""
    if len(frames) > _ENOUGH:
        return frames[::2]
    if min(frames.shape[2:]) >= 2 * _SMALLEST:
        height, width = (size // 2 * 2 for size in frames.shape[2:])
        blocks = frames[:, :, :height, :width].reshape(*frames.shape[:2], height // 2, 2, width // 2, 2)
        means: NDArray[np.uint8] = blocks.mean(axis=(3, 5)).astype(np.uint8)
        return means
    return frames[::2] if len(frames) > 1 else None
