"""A short looping movie of a stack before and after, as an animated WebP of bounded size."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_BYTES = 220_000
"""Of one movie, 300 kB in a page; it loses quality, then frames, until it has no more."""
_QUALITIES = (75, 50, 25)
_HOPELESS = 2
"""Times that size from which a lower quality alone would not do."""
_MILLISECONDS = 3600
"""That a whole movie takes, unless it has few frames."""
_LONGEST = 400
_GAP = 4
"""Columns between the two sides."""


def movie(frames: NDArray[np.uint8]) -> bytes:
    """Animated WebP of frames (N, 2, y, x), the first of each pair at the left, which starts again for ever."""
    while True:
        for quality in _QUALITIES:
            data = _encoded(frames, quality)
            if len(data) <= MAX_BYTES:
                return data
            if len(data) > _HOPELESS * MAX_BYTES:
                break
        if len(frames) == 1:
            return data
        frames = frames[::2]


def _encoded(frames: NDArray[np.uint8], quality: int) -> bytes:
    from PIL import Image

    gap = np.full((len(frames), frames.shape[2], _GAP), 128, np.uint8)
    pictures: list[Any] = [
        Image.fromarray(side_by_side).convert("RGB")
        for side_by_side in np.concatenate([frames[:, 0], gap, frames[:, 1]], axis=2)
    ]
    each = int(min(_MILLISECONDS / len(frames), _LONGEST))
    buffer = io.BytesIO()
    pictures[0].save(
        buffer, "WEBP", save_all=True, append_images=pictures[1:], duration=each, loop=0, quality=quality, method=0
    )
    return buffer.getvalue()
