"""The pictures of one stack that a report shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.report.images import grey_scale, shades

if TYPE_CHECKING:
    from collections.abc import Sequence

FloatImage = NDArray[np.float32]

_NAMES = ("mean_before", "mean_after", "std_before", "std_after", "kymograph_before", "kymograph_after")
PREVIEW_SIDE = 224
"""Pixels along the longer side of a frame of the preview, at most."""
THUMBNAIL_SIDE = 128


@dataclass(frozen=True, eq=False)
class Pictures:
    """Projections, kymographs and thumbnails of one stack.

    Attributes
    ----------
    mean_before, mean_after, std_before, std_after : (Y, X) float32 array
        Mean and standard deviation over the frames, before and after registration, in the stack's grey
        values; nan where no frame has a value.
    kymograph_before, kymograph_after : (T, X) float32 array
        A band of rows in the middle of the frame, averaged over its rows, one line for each frame.
    thumbnails : dict of int to 2-D array
        Small pictures of flagged frames, by frame number.
    reduction : int
        Pixels of the stack along each side of one pixel of the four projections.
    preview : (N, 2, y, x) uint8 array or None
        Some frames spread over the stack, before and after, small, on one grey scale; black where there is no data.
    """

    mean_before: FloatImage
    mean_after: FloatImage
    std_before: FloatImage
    std_after: FloatImage
    kymograph_before: FloatImage
    kymograph_after: FloatImage
    thumbnails: dict[int, NDArray[Any]] = field(default_factory=dict)
    reduction: int = 1
    preview: NDArray[np.uint8] | None = None

    def __post_init__(self) -> None:
        named = {name: getattr(self, name) for name in _NAMES}
        named |= {f"thumbnails[{frame}]": image for frame, image in self.thumbnails.items()}
        for name, image in named.items():
            if image.ndim != 2 or image.size == 0:
                raise ShapeError(f"{name} has shape {image.shape}; give a 2-D array with at least one element")

    def shrunk(self, side: int = 512, thumbnail_side: int = THUMBNAIL_SIDE) -> Pictures:
        """Average over blocks, so that no picture is longer than `side` pixels (thumbnails: `thumbnail_side`).

        Pixels that are not finite are left out of the means. Projections keep their proportions; the two
        sides of a kymograph are reduced apart.
        """
        factor = block_side(max(self.mean_before.shape), side)

        def projection(image: FloatImage) -> FloatImage:
            return block_mean(image, factor, factor)

        def kymograph(image: FloatImage) -> FloatImage:
            return block_mean(image, block_side(image.shape[0], side), block_side(image.shape[1], side))

        def thumbnail(image: NDArray[Any]) -> FloatImage:
            step = block_side(max(image.shape), thumbnail_side)
            return block_mean(image, step, step)

        return Pictures(
            mean_before=projection(self.mean_before),
            mean_after=projection(self.mean_after),
            std_before=projection(self.std_before),
            std_after=projection(self.std_after),
            kymograph_before=kymograph(self.kymograph_before),
            kymograph_after=kymograph(self.kymograph_after),
            thumbnails={frame: thumbnail(image) for frame, image in self.thumbnails.items()},
            reduction=self.reduction * factor,
            preview=self.preview,
        )


def block_mean(image: NDArray[Any], rows: int, columns: int, part: tuple[slice, slice] | None = None) -> FloatImage:
    """Mean of the finite pixels of each block of `rows` x `columns`, within `part` if given; nan where it has none.

    Blocks at the far edges may be smaller. Values beyond the range of float32 are clipped to it: this is for
    looking at only.
    """
    if rows < 1 or columns < 1:
        raise ArgumentError(f"blocks of {rows} x {columns} pixels; give at least 1 x 1")
    if image.dtype in (np.uint8, np.uint16):
        return _mean_of_small_integers(image, (rows, columns), part)
    if part is not None:
        known = np.full(image.shape, np.nan, dtype=np.promote_types(image.dtype, np.float32))
        known[part] = image[part]
        image = known
    values, finite = image, None
    if image.dtype.kind == "f":
        limit = float(np.finfo(np.float32).max)
        known = np.isfinite(image)
        finite = None if known.all() else known
        values = np.clip(image if finite is None else np.where(finite, image, 0), -limit, limit)
        if rows == columns == 1:
            small: FloatImage = values.astype(np.float32)
            return small if finite is None else np.where(finite, small, np.float32(np.nan))
    if finite is None:
        heights, widths = (_block_sum(np.ones(n), step) for n, step in zip(image.shape, (rows, columns), strict=True))
        counts = np.outer(heights, widths)
    else:
        counts = _block_sum(_block_sum(finite, rows).T, columns).T
    mean = np.full(counts.shape, np.nan)
    np.divide(_block_sum(_block_sum(values, rows).T, columns).T, counts, out=mean, where=counts > 0)
    return mean.astype(np.float32)


def _mean_of_small_integers(
    image: NDArray[Any], steps: tuple[int, int], part: tuple[slice, slice] | None
) -> FloatImage:
    """The same from a summed-area table, which is exact for them."""
    known = part or (slice(0, image.shape[0]), slice(0, image.shape[1]))
    edges = [
        np.clip(np.arange(0, size + step, step), side.start, max(side.start, side.stop)) - side.start
        for size, step, side in zip(image.shape, steps, known, strict=True)
    ]
    counts = np.outer(*map(np.diff, edges))
    mean = np.full(counts.shape, np.nan)
    if counts.any():
        table = cv2.integral(image[known], sdepth=cv2.CV_64F)
        sums = np.diff(np.diff(table[np.ix_(*edges)], axis=0), axis=1)
        np.divide(sums, counts, out=mean, where=counts > 0)
    return mean.astype(np.float32)


def _block_sum(array: NDArray[Any], step: int) -> NDArray[np.float64]:
    """Sums of `step` neighbours along the first axis, the last of them of what is left."""
    sums = np.zeros((-(-len(array) // step), *array.shape[1:]))
    for offset in range(min(step, len(array))):
        part = array[offset::step]
        sums[: len(part)] += part
    return sums


def preview_of(before: Sequence[NDArray[Any]], after: Sequence[NDArray[Any]]) -> NDArray[np.uint8] | None:
    """Make a preview of small frames before and after, on one grey scale."""
    if not before:
        return None
    frames = np.stack([np.stack(before), np.stack(after)], axis=1)
    scale = grey_scale(frames[:, 0])
    return shades(np.where(np.isfinite(frames), frames, scale.black), scale)


def block_side(length: int, limit: int) -> int:
    """Side of the smallest blocks that leave at most `limit` of them along `length` pixels."""
    return -(-length // limit)
