"""Reference images and their slopes on tiles, see :mod:`xcorr_app.registration.standard_error.uncertainty`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.correlation.weighting import RADIUS, smooth
from xcorr_app.gpu.peaks.noise_sums import LAGS, RowsAndProducts, started_rows_and_products
from xcorr_app.gpu.peaks.reference_tiles import reference_tiles
from xcorr_app.gpu.peaks.tile_scatter import TileGrid
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array, to_host
from xcorr_app.registration.quality import NOISE_PERIOD, signal_fraction, signal_fraction_of

_TILES = 12
"""Tiles along each axis, where they are not smaller than `_MIN_TILE_SIDE` pixels."""
_MIN_TILE_SIDE = 12
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
        counts = [max(1, min(_TILES, size // _MIN_TILE_SIDE)) for size in shape]
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
        return np.asarray(parts[0][:, :, None] & parts[1][:, None])

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


_UNEVEN = 1.6
"""By how much the scene's variance in those rows may differ from that of the whole image."""
_MARGIN = RADIUS + 2
"""Pixels around a tile that its slopes depend on."""


class ReferenceSlopes:
    """Reference images (1 or n, h, w) and their slopes on tiles; of a single one made once for any number of frames.

    `signal_fractions` (1 or n) are the shares of the variance of each that are not white noise, looked for where they
    are not given.
    `every_row` of tiles is taken where it is asked for, of large images, too.
    """

    def __init__(
        self,
        values: Array,
        kernel: NDArray[np.float64] | None,
        signal_fractions: NDArray[np.float64] | None = None,
        started: Callable[[], RowsAndProducts] | None = None,
        *,
        every_row: bool = False,
    ) -> None:
        xp = array_namespace(values)
        self.plain, of_noise = kernel is None, _of_noise(kernel)
        values = values.astype(working_dtype(values), copy=False)
        if is_device_array(values) and values.dtype == np.float32:
            self._by_kernels(
                values,
                kernel,
                signal_fractions,
                started or started_slopes(values, noisy=signal_fractions is None),
                every_row,
                of_noise,
            )
            return
        self.signal_fractions = signal_fractions = (
            signal_fraction(values) if signal_fractions is None else signal_fractions
        )
        images = values - values.mean(axis=(1, 2), keepdims=True)
        power = (images * images).mean(axis=(1, 2), dtype=np.float64)
        noise = power * (1 - xp.asarray(signal_fractions))
        self.noise = xp.asarray(of_noise) * noise
        """(3, 1 or n) variance of their white noise, and what a pixel of it adds to sums of G D along rows, columns."""
        self.tiles = tiles = Tiles.of(values.shape[1:], every_row=every_row)
        if len(images) == 1 and not every_row:
            of_part = (tiles.cut(images).astype(np.float64) ** 2).mean()
            # Of a few bright things those rows may hold none, or all.
            if not 1 / _UNEVEN < float((of_part - noise[0]) / xp.maximum(power[0] - noise[0], 1e-300)) < _UNEVEN:
                self.tiles = tiles = Tiles.of(values.shape[1:], every_row=True)
        g, s, wy, wx, gy, gx, *curves = found = _on_tiles(images, tiles, kernel)
        self.factors = found[1:4]
        """Smoothed images and their slopes along rows and columns, (3, 1 or n, rows, height, width)."""
        both = tuple((slope, other) for others in ((gy, gx), curves) for slope in (wy, wx) for other in others)
        pairs: tuple[tuple[Array, ...], ...] = (g,), (g, g), (s,), (s, g), (wy,), (wx,), (wy, g), (wx, g), *both
        self.sums = xp.stack([tiles.sums(*pair) for pair in pairs])
        """(18, 1 or n, rows, columns) over tiles: of all products that frames have no part in."""

    def few_tiles(self, bends: NDArray[np.float64] | None = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(1 or n,) by how much the scatter is larger where few tiles find the shift, and its degrees of freedom.

        Of K tiles that hold as much of the scene's slopes as E alike, 1 + 3 (1 / E - 1 / K), and E (1 - 3 / K).
        `bends` are sums of G D of rows with rows and of columns with columns, `sums[8:12:3]`, if on the host already.
        """
        slopes = np.abs(to_host(self.sums[8:12:3]) if bends is None else bends).reshape(2, self.sums.shape[1], -1)
        slopes /= np.maximum(slopes.sum(axis=2, keepdims=True), np.finfo(np.float64).tiny)
        one, tiles = (slopes**2).sum(axis=2).mean(axis=0), slopes.shape[2]
        return 1 + 3 * np.maximum(one - 1 / tiles, 0.0), (1 - 3 / tiles) / np.maximum(one, 1 / tiles)

    def _by_kernels(
        self,
        values: Array,
        kernel: NDArray[np.float64] | None,
        signal_fractions: NDArray[np.float64] | None,
        started: Callable[[], RowsAndProducts],
        every_row: bool,
        of_noise: NDArray[np.float64],
    ) -> None:
        xp, (height, width) = array_namespace(values), values.shape[1:]
        of_rows, products = started()
        if signal_fractions is None:
            signal_fractions = np.ones(len(values)) if products is None else signal_fraction_of(products)
        self.signal_fractions = signal_fractions
        mean, power = (of_rows.sum(axis=1) / (height * width)).T
        power -= mean * mean
        noise = power * (1 - signal_fractions)
        on_device = xp.asarray(np.vstack([mean, of_noise * noise]))
        self.noise = on_device[1:]
        self.tiles = tiles = Tiles.of((height, width), every_row=every_row)
        if len(values) == 1 and not every_row:
            rows = (np.array(tiles.first_rows)[:, None] + np.arange(tiles.shape[0])).ravel()
            total, squares = of_rows[0, rows].mean(axis=0) / width
            share = (squares - 2 * mean[0] * total + mean[0] ** 2 - noise[0]) / max(power[0] - noise[0], 1e-300)
            if not 1 / _UNEVEN < float(share) < _UNEVEN:
                self.tiles = tiles = Tiles.of((height, width), every_row=True)
        smoothed = None
        if kernel is not None:
            strips = _strips(values - xp.asarray(mean.astype(np.float32))[:, None, None], tiles)
            smoothed = smooth(strips.reshape(-1, *strips.shape[2:]), kernel.astype(np.float32)).astype(np.float32)
        self.factors, self.sums = reference_tiles(values, on_device[0], smoothed, tiles.grid)


def started_slopes(values: Array, *, noisy: bool) -> Callable[[], RowsAndProducts]:
    """Begin with what `ReferenceSlopes` needs to know of images (n, h, w) on a device; `noisy`: their noise too."""
    height, width = values.shape[1:]
    return started_rows_and_products(values, min(NOISE_PERIOD, height) if noisy and min(height, width) > LAGS else 0)


def _of_noise(kernel: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """(3, 1) variance of white noise, one, and the means of its G D along rows and along columns."""
    near = np.pad([[1.0]], 2) if kernel is None else kernel[RADIUS - 2 : RADIUS + 3, RADIUS - 2 : RADIUS + 3]
    weights = np.outer((-0.25, 0.0, 0.5, 0.0, -0.25), (0.0, 1.0, 1.0, 1.0, 0.0)) / 3
    return np.array([[1.0], [(near * weights).sum()], [(near * weights.T).sum()]])


def _strips(images: Array, tiles: Tiles) -> Array:
    """Rows of tiles of images with `_MARGIN` pixels around them, constant beyond the rim."""
    columns = slice(tiles.left, tiles.left + tiles.width + 2 * _MARGIN)
    around = (0, 0), (_MARGIN, _MARGIN), (_MARGIN, _MARGIN)
    return tiles.cut(array_namespace(images).pad(images, around, mode="edge")[..., columns], _MARGIN)


def _on_tiles(images: Array, tiles: Tiles, kernel: NDArray[np.float64] | None) -> Array:
    """What `_slopes` returns (9, n, rows, height, width), of images smoothed as the plane was.

    They are smoothed on few rows of tiles by themselves, for more as a whole, which is less.
    """
    xp, margin = array_namespace(images), 1 if kernel is None else _MARGIN
    height, rows = tiles.shape[0], len(tiles.first_rows)
    is_whole = kernel is None or rows * (height + 2 * margin) > images.shape[1] + 2 * margin
    if is_whole:
        parts = xp.pad(images, ((0, 0), (margin, margin), (margin, margin)), mode="edge")
    else:
        parts = _strips(images, tiles).reshape(-1, height + 2 * margin, tiles.width + 2 * margin)
    smoothed = parts
    if kernel is not None:
        smoothed = smooth(parts, kernel.astype(images.dtype)).astype(images.dtype)[:, 1:-1, 1:-1]
        parts = parts[:, RADIUS + 1 : -RADIUS - 1, RADIUS + 1 : -RADIUS - 1]
    # Rows of tiles that follow each other are one band.
    first, last = tiles.first_rows[0], tiles.first_rows[-1]
    bands = (first,) if is_whole and last - first == (rows - 1) * height else tiles.first_rows
    count, tall = len(bands), rows * height // len(bands)
    found = xp.empty((9, len(images), count, tall, tiles.width), images.dtype)
    for row, first in enumerate(bands):
        part = slice(row, None, count), slice(None), slice(None)
        if is_whole:
            part = slice(None), slice(first, first + tall + 2), slice(tiles.left, tiles.left + tiles.width + 2)
        for each, values in zip(found[:, :, row], _slopes(parts[part], smoothed[part]), strict=True):
            each[:] = values
    return found.reshape(9, len(images), rows, height, tiles.width)


def _slopes(images: Array, smoothed: Array) -> tuple[Array, ...]:
    """Images (n, h, w) and the smoothed; slopes of the smoothed, and of the images; second slopes; without their rims.

    The slope of the smoothed is that of the polynomial through 3 x 3 values, which the sub-pixel fit is.
    """
    inner = slice(None), slice(1, -1), slice(1, -1)
    along_rows = (smoothed[:, :, :-2] + smoothed[:, :, 1:-1] + smoothed[:, :, 2:]) / 3
    down = (smoothed[:, :-2] + smoothed[:, 1:-1] + smoothed[:, 2:]) / 3
    of_smoothed = (along_rows[:, 2:] - along_rows[:, :-2]) / 2, (down[:, :, 2:] - down[:, :, :-2]) / 2
    of_images = (images[:, 2:, 1:-1] - images[:, :-2, 1:-1]) / 2, (images[:, 1:-1, 2:] - images[:, 1:-1, :-2]) / 2
    down = images[:, 2:, 1:-1] + images[:, :-2, 1:-1] - 2 * images[inner]
    across = images[:, 1:-1, 2:] + images[:, 1:-1, :-2] - 2 * images[inner]
    twist = (images[:, 2:, 2:] - images[:, 2:, :-2] - images[:, :-2, 2:] + images[:, :-2, :-2]) / 4
    return images[inner], smoothed[inner], *of_smoothed, *of_images, down, twist, across
