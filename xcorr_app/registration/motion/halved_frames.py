"""Frames at half their size, for what needs no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from xcorr_app.gpu.field.launches import READ
from xcorr_app.gpu.field.run import halve_frames
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.gpu.runtime.types import name_of
from xcorr_app.registration.stack.frames import Chunk, FramesOver


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
        if array_namespace(chunk.frames) is np:
            return replace(chunk, frames=np.stack([halved_image(frame) for frame in chunk.frames]))
        return replace(chunk, frames=_halved_on_device(chunk.frames))


def halved_image(image: Array) -> Array:
    """Means of 2 x 2 pixels (Y, X) as float32."""
    if array_namespace(image) is not np:
        return _halved_on_device(image[None])[0]
    import cv2

    height, width = (size // 2 for size in image.shape)
    values = image[: 2 * height, : 2 * width].astype(np.float32, copy=False)
    return cv2.resize(values, (width, height), interpolation=cv2.INTER_AREA)


def _halved_on_device(frames: Array) -> Array:
    known = frames if name_of(frames.dtype) in READ else frames.astype(np.float32)
    return halve_frames(known)
