"""Raw frames of a colour camera: each pixel sees one colour, in a mosaic that repeats every two rows and columns.

Pixels two apart are then more alike than neighbours, as in no picture that optics draws, and frames lie on each other
best by even shifts. The four kinds of pixels are brought to one mean and one contrast.
"""

from __future__ import annotations

from dataclasses import dataclass

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
_MORE_ALIKE = 0.1
"""Of the variance, by which pixels two apart covary more than neighbours, along rows and columns, in every frame."""


@dataclass(frozen=True)
class EvenMosaicFrames(FloatFramesOver):
    """Frames whose four kinds of pixels have one mean and one contrast."""

    gain: NDArray[np.float64]
    """(2, 2) and"""
    offset: NDArray[np.float64]
    """(2, 2) of what each kind is multiplied by and what is then added, by even and odd rows and columns."""

    def changed(self, chunk: Chunk) -> Array:
        """Make the kinds even."""
        frames = chunk.frames
        for y in (0, 1):
            for x in (0, 1):
                frames[:, y::2, x::2] *= self.gain[y, x]
                frames[:, y::2, x::2] += self.offset[y, x]
        return frames

    @property
    def note(self) -> str:
        """What was done, in words."""
        return (
            "Pixels differ by even and odd rows and columns (raw frames of a colour camera): the four kinds were "
            "brought to one mean and contrast for measuring. Moved by other than even pixels, colours mix: interpolate "
            "them first, and apply these shifts."
        )


def even_mosaic(frames: Frames, measured: Measured, settings: Settings) -> EvenMosaicFrames | None:
    """Frames without a mosaic; None where there is none. Looked for where most shifts are not trusted."""
    if not settings.contrast.auto or min(frames.shape) < _SMALLEST:
        return None
    usable = np.flatnonzero(measured.usable)
    if usable.size < 2 or 2 * measured.undoubted(settings).sum() > usable.size:
        return None
    images = []
    for number in spread(usable, _LOOKED_AT).tolist():
        image = to_host(frames.read(number, number + 1).frames[0]).astype(np.float64)
        if not np.isfinite(image).all() or not _has_mosaic(image):
            return None
        images.append(image)
    stack = np.stack(images)
    kinds = [[stack[:, y::2, x::2] for x in (0, 1)] for y in (0, 1)]
    mean = np.array([[kind.mean() for kind in row] for row in kinds])
    deviation = np.array([[kind.std() for kind in row] for row in kinds])
    if not deviation.all():
        return None
    gain = deviation.mean() / deviation
    return EvenMosaicFrames(frames, gain, mean.mean() - gain * mean)


def _has_mosaic(image: NDArray[np.float64]) -> bool:
    """Whether pixels two apart are more alike than neighbours, both ways."""
    image = image - image.mean()
    least = _MORE_ALIKE * float((image**2).mean())
    for lines in (image, image.T):
        beside = float((lines[1:] * lines[:-1]).mean())
        if not float((lines[2:] * lines[:-2]).mean()) - beside > least:
            return False
    return True
