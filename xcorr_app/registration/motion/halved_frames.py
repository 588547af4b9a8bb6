"""Frames at half their size, for what needs no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.frames import Chunk, FramesOver
from xcorr_app.registration.motion.gauss_newton import halved


class HalvedFrames(FramesOver):
    """Means of 2 x 2 pixels of other frames, as float32; an odd row or column is left out."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.source.shape[0] // 2, self.source.shape[1] // 2

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a pixel."""
        return np.dtype(np.float32)

    def read(self, start: int, stop: int) -> Chunk:
        """Read frames and halve them."""
        chunk = self.source.read(start, stop)
        xp = array_namespace(chunk.frames)
        return replace(chunk, frames=xp.stack([halved_image(frame) for frame in chunk.frames]))


def halved_image(image: Array) -> Array:
    """Means of 2 x 2 pixels (Y, X) as float32."""
    if array_namespace(image) is not np:
        return halved(image.astype(np.float32))
    import cv2

    height, width = (size // 2 for size in image.shape)
    values = image[: 2 * height, : 2 * width].astype(np.float32, copy=False)
    return cv2.resize(values, (width, height), interpolation=cv2.INTER_AREA)
