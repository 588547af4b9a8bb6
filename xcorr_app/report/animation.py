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

    It loses quality, then every other frame, until it has at most `limit` bytes or one frame.
    """
    while True:
        gap = np.full((len(frames), frames.shape[2], _GAP), 128, np.uint8)
        strip = np.concatenate([frames[:, 0], gap, frames[:, 1]], axis=2)
        for quality in _QUALITIES:
            data = jpeg(strip.reshape(-1, strip.shape[2]), quality)
            if len(data) <= limit or (len(frames) == 1 and quality == _QUALITIES[-1]):
                return Film(data, len(frames), strip.shape[1:])
            if len(data) > _HOPELESS * limit and len(frames) > 1:
                break
        frames = frames[::2]
