"""A grey picture as a file of bounded size: without loss where it fits, else JPEG, or WebP where parts are missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import imagecodecs
import numpy as np

from xcorr_app.report.images import GreyScale, png, shades
from xcorr_app.report.pictures import block_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

_QUALITIES = (85, 70, 50, 30)
_FEW = 256
"""Pixels of a picture that is not made smaller any more."""


def picture_file(image: NDArray[Any], scale: GreyScale, limit: int) -> tuple[str, bytes]:
    """Media type and bytes of `image` (2-D) in greys; what is not finite is transparent.

    It loses quality, then half of its rows and columns, until it has at most `limit` bytes.
    """
    while True:
        if image.size <= limit:
            data = png(image, scale)
            if len(data) <= limit or image.size <= _FEW:
                return "image/png", data
        finite = np.isfinite(image)
        grey = shades(np.where(finite, image, scale.black), scale)
        for quality in _QUALITIES:
            kind, data = _lossy(grey, finite, quality)
            if len(data) <= limit:
                return kind, data
        if image.size <= _FEW:
            return kind, data
        image = block_mean(image, 2, 2)


def _lossy(grey: NDArray[np.uint8], finite: NDArray[np.bool_], quality: int) -> tuple[str, bytes]:
    # Noise takes libwebp twenty times as long as libjpeg; JPEG cannot leave pixels out.
    if finite.all():
        return "image/jpeg", jpeg(grey, quality)
    layers = np.stack([grey, grey, grey, np.where(finite, 255, 0).astype(np.uint8)], axis=-1)
    return "image/webp", bytes(imagecodecs.webp_encode(layers, level=quality, lossless=False, method=0))


def jpeg(grey: NDArray[np.uint8], quality: int) -> bytes:
    """Grey JPEG of `grey` (2-D)."""
    return bytes(imagecodecs.jpeg8_encode(np.ascontiguousarray(grey), level=quality))
