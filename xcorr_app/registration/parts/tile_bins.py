"""Bins of 2 x 2 pixels of frames and of what they are compared with, in one unit, and sums over tiles of them."""

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.quality import signal_fraction

SAMPLED = 4
"""One of so many rows tells the mean and the variance of an image."""
MIN_CLEAN = 1e-3
BINNED_FROM = 192
"""Rows and columns from which bins of 2 x 2 pixels are enough to look at."""
_TILE = 16
"""Pixels along the sides of tiles of which the power is compared."""


def standard(
    images: Array, whole: NDArray[np.intp] | None = None, inside: Array = 1
) -> tuple[Array, NDArray[np.float64]]:
    """Bins of images, moved by whole pixels (n, 2), and the variance of their noise.

    Their means are zero, and the variance of what is not noise is one. What is not `inside` the moved frame is zero.
    """
    xp = array_namespace(images)
    dtype = working_dtype(images)
    sample = images[:, ::SAMPLED].astype(dtype)
    mean = sample.mean(axis=(1, 2), keepdims=True)
    variance = to_host(sample.var(axis=(1, 2), dtype=np.float64))
    clean = np.maximum(signal_fraction(images, variance), MIN_CLEAN)
    scale = xp.asarray(np.sqrt(np.where(variance > 0, variance, 1.0) * clean))[:, None, None].astype(dtype)
    bins = binned(images if whole is None else moved(images, whole))
    return (bins - mean * inside) / scale, (1 - clean) / clean / 4


def covered_by(shape: tuple[int, int], size: int, tiles: tuple[int, int], whole: NDArray[np.intp]) -> NDArray[np.bool_]:
    """(n, rows, columns) whether frames of a shape, moved by whole pixels (n, 2), cover a tile of a size."""
    covered = []
    for axis, (pixels, count) in enumerate(zip(shape, tiles, strict=True)):
        first = size * np.arange(count)
        begin, end = np.maximum(whole[:, axis, None], 0), pixels + np.minimum(whole[:, axis, None], 0)
        covered.append((first >= begin) & (first + size <= end))
    return np.asarray(covered[0][:, :, None] & covered[1][:, None])


def sums_over_tiles(
    f: Array, g: Array, offsets: NDArray[np.float64], size: int, tiles: tuple[int, int]
) -> NDArray[np.float64]:
    """Sums over tiles (13, n, rows, columns) of bins of frames f (n, h, w) and of references g (1 or n, h, w).

    Of f, g, r, their squares, gy^2, gy gx, gx^2, gy r, gx r, gy and gx; gy and gx are the slopes of g, and r is
    f - g - oy gy - ox gx with (oy, ox) the `offsets` (n, 2).
    """
    xp = array_namespace(f)
    rows, columns = (size * n for n in tiles)
    f, g = (each[:, :rows, :columns] for each in (f, g))
    gy, gx = slopes(g, 1), slopes(g, 2)
    offset = xp.asarray(offsets)[:, :, None, None].astype(f.dtype)
    rest = f - g - offset[:, 0] * gy - offset[:, 1] * gx
    squares, of_slopes = ((each, each) for each in (f, g, rest)), ((gy, gy), (gy, gx), (gx, gx))
    kinds = ((f,), (g,), (rest,), *squares, *of_slopes, (gy, rest), (gx, rest), (gy,), (gx,))
    products = (kind[0] if len(kind) == 1 else kind[0] * kind[1] for kind in kinds)
    return np.stack(np.broadcast_arrays(*(to_host(_sums(product, size, tiles)) for product in products)))


def binned(images: Array) -> Array:
    """Means of 2 x 2 pixels."""
    rows, columns = images.shape[1] // 2 * 2, images.shape[2] // 2 * 2
    part, xp = images[:, :rows, :columns], array_namespace(images)
    pairs = xp.add(part[:, ::2], part[:, 1::2], dtype=working_dtype(images))
    return (pairs[:, :, ::2] + pairs[:, :, 1::2]) / 4


def evenness(image: Array) -> float:
    """Square of the mean power of tiles of an image (h, w) over their mean square: 1 where all parts show as much."""
    rows, columns = (size // _TILE for size in image.shape)
    values = image[: rows * _TILE, : columns * _TILE].astype(np.float64)
    power = ((values - values.mean()) ** 2).reshape(rows, _TILE, columns, _TILE).mean(axis=(1, 3))
    return float(power.mean() ** 2 / array_namespace(image).maximum((power * power).mean(), np.finfo(np.float64).tiny))


def slopes(images: Array, axis: int) -> Array:
    """Central differences along an axis, in values per pixel; bins are two pixels. Zero on the rim."""
    xp = array_namespace(images)
    slope = xp.zeros_like(images)
    if axis == 1:
        slope[:, 1:-1] = (images[:, 2:] - images[:, :-2]) / 4
    else:
        slope[:, :, 1:-1] = (images[:, :, 2:] - images[:, :, :-2]) / 4
    return slope


def _sums(values: Array, size: int, tiles: tuple[int, int]) -> Array:
    """Sums over tiles (n, rows, columns) of bins (n, h, w), along columns first.

    No products with ones: for those BLAS would share the work with threads that measure frames meanwhile.
    """
    along_columns = values.reshape(values.shape[0], tiles[0], size, -1).sum(axis=2)
    return along_columns.reshape(*along_columns.shape[:2], tiles[1], size).sum(axis=3, dtype=np.float64)


def covered_bins(shape: tuple[int, int], whole: NDArray[np.intp]) -> NDArray[np.float64]:
    """Share of each bin (n, h, w) that a frame covers when moved by whole pixels (n, 2)."""
    covered = []
    for axis, size in enumerate(shape):
        place = np.arange(size // 2 * 2) - whole[:, axis, None]
        covered.append(((place >= 0) & (place < size)).reshape(whole.shape[0], -1, 2).mean(axis=2))
    return np.asarray(covered[0][:, :, None] * covered[1][:, None])


def moved(frames: Array, whole: NDArray[np.intp]) -> Array:
    """Frames (n, h, w) moved by whole pixels (n, 2); zero where nothing is known."""
    xp = array_namespace(frames)
    height, width = frames.shape[1:]
    moved = xp.zeros_like(frames)
    for i, (dy, dx) in enumerate(whole.tolist()):
        to = slice(max(dy, 0), height + min(dy, 0)), slice(max(dx, 0), width + min(dx, 0))
        of = slice(max(-dy, 0), height - max(dy, 0)), slice(max(-dx, 0), width - max(dx, 0))
        moved[i, *to] = frames[i, *of]
    return moved
