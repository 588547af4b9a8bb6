"""Grey pictures for a page: common grey scale, PNG bytes, scale bar."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import imagecodecs
import numpy as np

from xcorr_app.errors import ArgumentError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MAX_VALUES = 1 << 15
_PNG_LEVEL = 3
"""Projections are noise to zlib: more effort does not make them smaller."""


@dataclass(frozen=True)
class GreyScale:
    """The values drawn black and white."""

    black: float
    white: float


@dataclass(frozen=True)
class ScaleBar:
    """A bar of round physical length: its share of the picture's width, 0 to 1, and its label."""

    share: float
    label: str


def grey_scale(*images: NDArray[Any], percentile: float = 0.2) -> GreyScale:
    """One scale for all of `images`: from a low to a high percentile of all their finite values together.

    Of large images every so many values are looked at.
    """
    every = -(-sum(image.size for image in images) // _MAX_VALUES)
    flat = [image.reshape(-1)[::every] for image in images]
    values = np.concatenate([part[np.isfinite(part)].astype(np.float64) for part in flat])
    if not values.size:
        values = np.concatenate([image[np.isfinite(image)].astype(np.float64) for image in images])
    if not values.size:
        return GreyScale(0.0, 1.0)
    black, white = (float(value) for value in np.percentile(values, (percentile, 100 - percentile)))
    if black == white:  # half of the values or more are equal: show them mid-grey, and the rest about them
        half = max(float(np.ptp(values)) / 2, 0.5, abs(black) * 1e-6)
        return GreyScale(black - half, white + half)
    return GreyScale(black, white)


def png(image: NDArray[Any], scale: GreyScale) -> bytes:
    """`image` (2-D) as an 8-bit grey PNG; pixels that are not finite are transparent."""
    if not scale.black < scale.white:
        raise ArgumentError(f"grey scale from {scale.black} to {scale.white}; give black below white")
    finite = np.isfinite(image)
    grey = shades(np.where(finite, image, scale.black), scale)
    if not finite.all():
        grey = np.stack([grey, np.where(finite, 255, 0).astype(np.uint8)], axis=-1)
    return bytes(imagecodecs.png_encode(np.ascontiguousarray(grey), level=_PNG_LEVEL))


def shades(values: NDArray[Any], scale: GreyScale) -> NDArray[np.uint8]:
    """Finite values as 0 (black or darker) to 255 (white or brighter)."""
    share = np.clip(values.astype(np.float64), scale.black, scale.white)
    share -= scale.black
    share /= scale.white - scale.black
    share *= 255
    grey: NDArray[np.uint8] = np.rint(share, out=share).astype(np.uint8)
    return grey


def scale_bar(width: float, pixel_width: float, unit: str | None) -> ScaleBar | None:
    """Find the longest round bar (1, 2 or 5 times a power of ten) in 30 % of a picture `width` pixels wide.

    None where the pixel's size is unknown or senseless.
    """
    length = 0.3 * width * pixel_width
    if unit is None or not math.isfinite(length) or length <= 0:
        return None
    decade = 10.0 ** math.floor(math.log10(length))
    bar = max(step * decade for step in (1, 2, 5) if step * decade <= length * (1 + 1e-9))
    return ScaleBar(bar / (width * pixel_width), f"{bar:g} {unit}")
