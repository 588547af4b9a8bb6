"""From a frame as stored to what is compared: region of interest, finite values, prefilter, contrast."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import flat_images
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.frames import Chunk
from xcorr_app.registration.settings import Settings


@dataclass(frozen=True)
class Prepared:
    """Frames cropped, finite and filtered, with what is known of each from reading it."""

    frames: Array
    """Shape (n, h, w)."""
    usable: NDArray[np.bool_]
    """False where a frame could not be read, holds no finite value, or is flat."""
    flat: NDArray[np.bool_]
    unreadable: NDArray[np.bool_]
    non_finite: NDArray[np.int64]
    """Number of NaN or infinite pixels in the measured part; they were replaced by the mean of the others."""


def prepare(chunk: Chunk, settings: Settings) -> Prepared:
    """Make a chunk of frames ready for measuring."""
    frames = chunk.frames if settings.roi is None else chunk.frames[:, *settings.roi]
    xp = array_namespace(frames)
    pixels = frames.shape[1] * frames.shape[2]
    non_finite = np.zeros(frames.shape[0], dtype=np.int64)
    if frames.dtype.kind == "f":
        finite = xp.isfinite(frames)
        count = to_host(finite.sum(axis=(1, 2)))
        non_finite = pixels - count
        if non_finite.any():
            # Divided before it is summed: the sum of large values must not overflow.
            shares = (
                xp.where(finite, frames, 0).astype(np.float64) / xp.maximum(finite.sum(axis=(1, 2)), 1)[:, None, None]
            )
            frames = xp.where(finite, frames, shares.sum(axis=(1, 2))[:, None, None].astype(frames.dtype))
    unreadable = np.zeros(frames.shape[0], dtype=bool)
    if chunk.unreadable:
        unreadable[:] = [chunk.start + i in chunk.unreadable for i in range(frames.shape[0])]
    unreadable |= non_finite == pixels
    frames = settings.contrast(settings.prefilter(frames))
    flat = to_host(flat_images(frames)) & ~unreadable
    return Prepared(frames, ~(flat | unreadable), flat, unreadable, non_finite)
