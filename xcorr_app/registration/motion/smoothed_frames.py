"""Frames without their means under a Gaussian, at full size and at half: one by one, or together on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.field.launches import READ
from xcorr_app.gpu.field.run import smooth_frames
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.gpu.runtime.types import name_of
from xcorr_app.registration.motion.halved_frames import halved_image


def finite(image: Array) -> Array:
    """An image as float32 without its mean, which takes the place of NaN and infinity."""
    xp = array_namespace(image)
    if image.dtype.kind != "f" and image.dtype.itemsize <= 2:  # which float32 holds as they are
        values = image.astype(np.float32)
        values -= np.float32(float(values.mean(dtype=np.float64)))
        return values
    if image.dtype.kind != "f":
        return (image - xp.mean(image, dtype=np.float64)).astype(np.float32)
    mean = float(image.mean(dtype=np.float64))
    if np.isfinite(mean):
        return (image - image.dtype.type(mean)).astype(np.float32, copy=False)
    known = xp.isfinite(image)
    mean = float(xp.where(known, image, 0.0).sum(dtype=np.float64)) / max(int(known.sum()), 1)
    return xp.where(known, image - mean, 0.0).astype(np.float32)


def smoothed(image: Array, sigma: float) -> Array:
    """An image of the host under a Gaussian."""
    import cv2

    return cv2.GaussianBlur(image, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)


def sizes_of(frames: Array, sigma: float, half: int) -> list[Array]:
    """Frames (T, Y, X) as they are compared, at full size and where `half` is 2 at half."""
    xp = array_namespace(frames)
    if xp is np:
        images = [smoothed(finite(frame), sigma) for frame in frames]
        sizes = [np.stack(images)]
        return [*sizes, np.stack([halved_image(image) for image in images])] if half == 2 else sizes
    if name_of(frames.dtype) not in READ:
        frames = frames.astype(np.float64)
    both = smooth_frames(frames, _means(frames, xp), xp.asarray(gaussian_taps(sigma)), half=half == 2)
    return [each for each in both if each is not None]


def gaussian_taps(sigma: float) -> NDArray[np.float32]:
    """Weights of a Gaussian to four standard deviations, as OpenCV and SciPy take it; of none, one."""
    if sigma == 0:
        return np.ones(1, np.float32)
    away = np.arange(-int(4 * sigma + 0.5), int(4 * sigma + 0.5) + 1)
    weights = np.exp(-0.5 * (away / sigma) ** 2)
    found: NDArray[np.float32] = (weights / weights.sum()).astype(np.float32)
    return found


def _means(frames: Array, xp: Any) -> Array:
    """Means (T,) of the finite pixels of frames on a device."""
    means = frames.mean(axis=(1, 2), dtype=np.float64)
    if frames.dtype.kind != "f" or bool(xp.isfinite(means).all()):
        return means
    known = xp.isfinite(frames)
    count = xp.maximum(known.sum(axis=(1, 2)), 1)
    return xp.where(known, frames, 0).sum(axis=(1, 2), dtype=np.float64) / count
