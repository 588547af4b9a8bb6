"""Rows of tiles over which the slopes of a reference are summed, see ``standard_error/uncertainty.py``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.peaks.tile_scatter import TileGrid
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array

_TILES = 12
"""Tiles along each axis, where they are not smaller than `_SMALLEST` pixels."""
_SMALLEST = 12
_CHOSEN = ((384, slice(1, None, 4)), (224, slice(None, None, 2)), (0, slice(None)))
"""Which rows of tiles are looked at in images of at least so many rows."""


@dataclass(frozen=True)
class Tiles:
    """Rows of tiles of an image, fixed to the reference."""

    first_rows: tuple[int, ...]
    left: int
    shape: tuple[int, int]
    """Rows and columns of a tile."""
    columns: int
    """Tiles along a row."""

    @classmethod
    def of(cls, shape: tuple[int, int], *, every_row: bool = False) -> Tiles:
        """Tiles of images of a shape: some rows of them, or every one."""
        counts = [max(1, min(_TILES, size // _SMALLEST)) for size in shape]
        height, width = (size // count for size, count in zip(shape, counts, strict=True))
        top, left = ((size % count) // 2 for size, count in zip(shape, counts, strict=True))
        chosen = next(part for rows, part in _CHOSEN if shape[0] >= rows)
        rows = range(top, top + counts[0] * height, height)
        first_rows = tuple(rows if every_row else rows[chosen])
        return cls(first_rows, left, (height, width), counts[1])

    @property
    def width(self) -> int:
        """Columns of all tiles of a row."""
        return self.columns * self.shape[1]

    @property
    def grid(self) -> TileGrid:
        """The same as numbers."""
        pitch = self.first_rows[1] - self.first_rows[0] if len(self.first_rows) > 1 else self.shape[0]
        return TileGrid(len(self.first_rows), self.columns, *self.shape, self.first_rows[0], pitch, self.left)

    def cut(self, images: Array, margin: int = 0) -> Array:
        """Rows of tiles of images (n, h, w), (n, rows, height + 2 margin, w), padded by `margin` rows on both sides."""
        xp = array_namespace(images)
        height = self.shape[0] + 2 * margin
        return xp.stack([images[:, first : first + height] for first in self.first_rows], axis=1)

    def inside(self, peak: NDArray[np.intp], shape: tuple[int, int]) -> NDArray[np.bool_]:
        """(n, rows, columns) whether a tile lies within the overlap of images with whole shifts (n, 2)."""
        parts = []
        for axis, first in enumerate((np.array(self.first_rows), self.left + self.shape[1] * np.arange(self.columns))):
            low, high = np.maximum(peak[:, axis], 0)[:, None], (shape[axis] + np.minimum(peak[:, axis], 0))[:, None]
            parts.append((first >= low) & (first + self.shape[axis] <= high))
        inside: NDArray[np.bool_] = parts[0][:, :, None] & parts[1][:, None]
        return inside

    def sums(self, *factors: Array) -> Array:
        """Sums (n, rows, columns) over tiles of values (n, rows, height, width), or of the products of two."""
        xp = array_namespace(factors[0])
        if len(factors) == 1:
            sums = factors[0].sum(axis=2)
        elif is_device_array(factors[0]):
            sums = (factors[0] * factors[1]).sum(axis=2)
        elif factors[1].shape[0] == 1:
            sums = xp.einsum("ijkl,jkl->ijl", factors[0], factors[1][0])
        else:
            sums = xp.einsum("ijkl,ijkl->ijl", *factors)
        return sums.reshape(*sums.shape[:2], self.columns, self.shape[1]).sum(axis=3, dtype=np.float64)
