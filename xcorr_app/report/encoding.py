"""Grey pictures and short movies as files of bounded size, and how much of a page a stack may take.

A page of many stacks must stay one that a browser opens, or a mail takes. A picture is stored without loss where it
fits, else as JPEG, or WebP where parts are missing. A movie is its frames one below the other in a JPEG, which a style
sheet shows one after the other: an animated WebP of the same frames takes twenty times as long to encode.
"""

from dataclasses import dataclass, replace
from typing import Any

import imagecodecs
import numpy as np
from numpy.typing import NDArray

from xcorr_app.report.pictures import GreyScale, block_mean, png, shades


@dataclass(frozen=True)
class Room:
    """What the section of one stack may hold."""

    side: int
    """Pixels along the longer side of a picture, at most."""
    picture: int
    """Bytes of a picture."""
    movie: int
    """Bytes of the movie; 0 for none."""
    points: int
    """Places along a line of a chart."""
    rows: int
    """Frames that are listed: the first ones."""
    flagged: int
    """Flagged frames that are listed."""
    thumbnails: int
    """Small pictures of flagged frames."""
    is_brief: bool = False
    """Only the means, the shifts and the figures; the rest is on a page of the stack's own."""


ALONE = Room(side=512, picture=90_000, movie=200_000, points=1200, rows=2000, flagged=50, thumbnails=24)
"""Nothing is left out: on a page of its own, or with one or two others."""
_SHARED = Room(side=256, picture=5_000, movie=10_000, points=80, rows=24, flagged=8, thumbnails=2)
"""Of ten, or some more."""
_BRIEF = Room(side=128, picture=3_000, movie=0, points=60, rows=0, flagged=5, thumbnails=0, is_brief=True)
MAX_UNREDUCED, MAX_WITH_PICTURES, MAX_SECTIONS = 3, 20, 500
"""Stacks of a page until it says less of each."""


def room_for(stacks: int) -> Room:
    """What each stack of a page of so many may take: 1 MB for ten of them, 10 MB for 500."""
    if stacks <= MAX_UNREDUCED:
        return ALONE
    if stacks > MAX_WITH_PICTURES:
        return _BRIEF
    fewer = max(1.0, 10 / stacks)
    return replace(_SHARED, picture=int(_SHARED.picture * fewer), movie=int(_SHARED.movie * fewer))


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
        image = block_mean(image, 2)


def _lossy(grey: NDArray[np.uint8], finite: NDArray[np.bool_], quality: int) -> tuple[str, bytes]:
    # Noise takes libwebp twenty times as long as libjpeg; JPEG cannot leave pixels out.
    if finite.all():
        return "image/jpeg", jpeg(grey, quality)
    layers = np.stack([grey, grey, grey, np.where(finite, 255, 0).astype(np.uint8)], axis=-1)
    return "image/webp", bytes(imagecodecs.webp_encode(layers, level=quality, lossless=False, method=0))


def jpeg(grey: NDArray[np.uint8], quality: int) -> bytes:
    """Grey JPEG of `grey` (2-D)."""
    return bytes(imagecodecs.jpeg8_encode(np.ascontiguousarray(grey), level=quality))


_FILM_QUALITIES = (75, 50, 30)
_HOPELESS = 2.5
"""Times the size allowed from which a lower quality alone would not do."""
_MILLISECONDS = 3600
"""That a whole movie takes, unless it has few frames."""
_LONGEST = 400
_GAP = 4
"""Columns between the two sides."""
_ENOUGH = 8
"""Frames below which a movie rather gets smaller."""
_SMALLEST = 24
"""Rows or columns below which it does not."""


@dataclass(frozen=True)
class Film:
    """Frames of a movie, one below the other in one picture."""

    data: bytes
    """JPEG."""
    frames: int
    shape: tuple[int, int]
    """Rows and columns of one frame, the two sides and what is between them."""

    @property
    def seconds(self) -> float:
        """That all frames together are shown for."""
        return min(_MILLISECONDS, _LONGEST * self.frames) / 1000


def film(frames: NDArray[np.uint8], limit: int) -> Film:
    """Film of frames (N, 2, y, x), the first of each pair at the left.

    It loses quality, then every other frame while there are many, then half of its rows and columns, until it has at
    most `limit` bytes or is as small as can be.
    """
    while True:
        before = np.pad(frames[:, 0], ((0, 0), (0, 0), (0, _GAP)), constant_values=128)
        strip = np.concatenate([before, frames[:, 1]], axis=2)
        for quality in _FILM_QUALITIES:
            data = jpeg(strip.reshape(-1, strip.shape[2]), quality)
            if len(data) <= limit:
                return Film(data, len(frames), strip.shape[1:])
            if len(data) > _HOPELESS * limit and (smaller := _smaller(frames)) is not None:
                break
        else:
            smaller = _smaller(frames)
        if smaller is None:
            return Film(data, len(frames), strip.shape[1:])
        frames = smaller


def _smaller(frames: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
    """Half of the frames, or frames of a quarter of their pixels; None where neither leaves anything to see."""
    if len(frames) > _ENOUGH:
        return frames[::2]
    if min(frames.shape[2:]) >= 2 * _SMALLEST:
        height, width = (size // 2 * 2 for size in frames.shape[2:])
        blocks = frames[:, :, :height, :width].reshape(*frames.shape[:2], height // 2, 2, width // 2, 2)
        means: NDArray[np.uint8] = blocks.mean(axis=(3, 5)).astype(np.uint8)
        return means
    return frames[::2] if len(frames) > 1 else None
