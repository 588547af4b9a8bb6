"""The pictures of one stack that a report shows: reduced, on a common grey scale, as PNG bytes, with a scale bar."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import cv2
import imagecodecs
import numpy as np
from numpy.typing import NDArray

_MAX_VALUES = 1 << 13
_PERCENTILES = (0.2, 99.8)
"""Of the values, which are drawn black and white."""
_PNG = {"level": 1, "filter": imagecodecs.PNG.FILTER.PAETH, "strategy": imagecodecs.PNG.STRATEGY.RLE}
"""Projections are noise to zlib: to look for what repeats, or for the best filter of every line, takes three times as
long, and makes them larger."""


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


def grey_scale(*images: NDArray[Any]) -> GreyScale:
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
    black, white = (float(value) for value in np.percentile(values, _PERCENTILES))
    if black == white:  # half of the values or more are equal: show them mid-grey, and the rest about them
        half = max(float(np.ptp(values)) / 2, 0.5, abs(black) * 1e-6)
        return GreyScale(black - half, white + half)
    return GreyScale(black, white)


def png(image: NDArray[Any], scale: GreyScale) -> bytes:
    """`image` (2-D) as an 8-bit grey PNG; pixels that are not finite are transparent."""
    finite = np.isfinite(image)
    grey = shades(np.where(finite, image, scale.black), scale)
    if not finite.all():
        grey = np.stack([grey, np.where(finite, 255, 0).astype(np.uint8)], axis=-1)
    return bytes(imagecodecs.png_encode(np.ascontiguousarray(grey), **_PNG))


def shades(values: NDArray[Any], scale: GreyScale) -> NDArray[np.uint8]:
    """Finite values as 0 (black or darker) to 255 (white or brighter)."""
    share = values.astype(np.float64)
    np.clip(share, scale.black, scale.white, out=share)
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


FloatImage = NDArray[np.float32]

PREVIEW_SIDE = 224
"""Pixels along the longer side of a frame of the preview, at most."""
THUMBNAIL_SIDE = 128


@dataclass(frozen=True, eq=False)
class Pictures:
    """Means and thumbnails of one stack.

    Attributes
    ----------
    mean_before, mean_after : (Y, X) float32 array
        Mean over the frames, before and after registration, in the stack's grey values; nan where no frame has a value.
    thumbnails : dict of int to 2-D array
        Small pictures of flagged frames, by frame number.
    reduction : int
        Pixels of the stack along each side of one pixel of the means.
    preview : (N, 2, y, x) uint8 array or None
        Some frames spread over the stack, before and after, small, on one grey scale; black where there is no data.
    """

    mean_before: FloatImage
    mean_after: FloatImage
    thumbnails: dict[int, NDArray[Any]] = field(default_factory=dict)
    reduction: int = 1
    preview: NDArray[np.uint8] | None = None

    def shrunk(self, side: int = 512) -> Self:
        """Average over blocks, so that no picture is longer than `side` pixels; what is not finite is left out."""
        factor = block_side(max(self.mean_before.shape), side)
        if factor == 1:
            return self
        before, after = (block_mean(image, factor) for image in (self.mean_before, self.mean_after))
        return replace(self, mean_before=before, mean_after=after, reduction=self.reduction * factor)


def block_mean(image: NDArray[Any], side: int, part: tuple[slice, slice] | None = None) -> FloatImage:
    """Mean of the finite pixels of each block of `side` x `side`, within `part` if given; nan where it has none.

    Blocks at the far edges may be smaller. Values beyond the range of float32 are clipped to it: this is for
    looking at only.
    """
    inside = part or (slice(None), slice(None))
    blocks = [-(-size // side) for size in image.shape]
    kind: Any = np.float32 if image.dtype in (np.uint8, np.int16, np.uint16, np.float32) else np.float64
    # Blocks of one size, by a rim of zeros that count for nothing.
    values, counted = (np.zeros([side * number for number in blocks], kind) for _ in range(2))
    rows, columns = (slice(0, size) for size in image.shape)
    known = np.isfinite(image[inside])
    np.copyto(values[rows, columns][inside], image[inside], where=known, casting="unsafe")
    counted[rows, columns][inside] = known
    mean, share = (
        cv2.resize(each, blocks[::-1], interpolation=cv2.INTER_AREA).reshape(blocks) for each in (values, counted)
    )
    limit = float(np.finfo(np.float32).max)
    found: FloatImage = np.divide(mean, share, out=np.full(blocks, np.nan), where=share > 0.5 / side**2)
    return np.clip(found, -limit, limit, out=found).astype(np.float32)


def preview_of(before: Sequence[NDArray[Any]], after: Sequence[NDArray[Any]]) -> NDArray[np.uint8] | None:
    """Make a preview of small frames before and after, on one grey scale."""
    if not before:
        return None
    frames = np.stack([np.stack(before), np.stack(after)], axis=1)
    scale = grey_scale(frames[:, 0])
    frames[~np.isfinite(frames)] = scale.black
    return shades(frames, scale)


def block_side(length: int, limit: int) -> int:
    """Side of the smallest blocks that leave at most `limit` of them along `length` pixels."""
    return -(-length // limit)
