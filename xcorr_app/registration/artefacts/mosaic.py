"""Raw frames of a colour camera: each pixel sees one colour, in a mosaic that repeats every two rows and columns.

Pixels two apart are then more alike than neighbours, as in no picture that optics draws, and frames lie on each other
best by even shifts. Each pixel becomes the mean of four, of one of each kind: what alternates from pixel to pixel is
gone, and all frames are displaced alike.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, to_host
from xcorr_app.registration.measuring.few_frames import spread
from xcorr_app.registration.measuring.measured import Measured
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import Chunk, FloatFramesOver, Frames

_LOOKED_AT = 5
_SMALLEST = 32
"""Rows and columns below which nothing is looked for."""
_MORE_ALIKE = 0.03
"""Of the variance, by which pixels two apart covary more than neighbours, along rows and columns, in every frame."""


class EvenMosaicFrames(FloatFramesOver):
    """Frames of means over two rows and two columns."""

    def changed(self, chunk: Chunk) -> Array:
        """Average each row, then each column, with the next; the last is as the one before."""
        frames = chunk.frames
        for lines in (frames, frames.transpose(0, 2, 1)):
            lines[:, :-1] = (lines[:, :-1] + lines[:, 1:]) / 2
            lines[:, -1] = lines[:, -2]
        return frames

    @property
    def note(self) -> str:
        """What was done, in words."""
        return (
            "Pixels differ by even and odd rows and columns (raw frames of a colour camera): means over two rows and "
            "columns were measured. Moved by other than even pixels, colours mix: interpolate "
            "them first, and apply these shifts."
        )


def even_mosaic(frames: Frames, measured: Measured, settings: Settings) -> EvenMosaicFrames | None:
    """Frames without a mosaic; None where there is none."""
    usable = np.flatnonzero(measured.usable)
    if not settings.contrast.auto or min(frames.shape) < _SMALLEST or usable.size < 2:
        return None
    for number in spread(usable, _LOOKED_AT).tolist():
        image = to_host(frames.read(number, number + 1).frames[0]).astype(np.float64)
        if not np.isfinite(image).all() or not _has_mosaic(image):
            return None
    return EvenMosaicFrames(frames)


def _has_mosaic(image: NDArray[np.float64]) -> bool:
    """Whether pixels two apart are more alike than neighbours, both ways."""
    image = image - image.mean()
    least = _MORE_ALIKE * float((image**2).mean())
    for lines in (image, image.T):
        beside = float((lines[1:] * lines[:-1]).mean())
        if not float((lines[2:] * lines[:-2]).mean()) - beside > least:
            return False
    return True
