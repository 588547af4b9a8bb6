"""Does the frame move as one? Which tiles of it agree with the shift, and which move otherwise.

A frame moved by its shift shows the reference. In each tile (sums over 3 x 3 of them, binomial weights) the two are
compared: what they do not share, beyond what their noise accounts for and a small displacement of its own explains,
against what they show; and that displacement against its standard error (least squares on the slopes of the
reference: Lucas and Kanade 1981). Both are looked at in bins of 2 x 2 pixels, smoothed where they are noisy. A frame
that is brighter or darker than the reference, all over or in places, agrees all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.filtering import named
from xcorr_app.filtering.convolve import filter_frames
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.quality import clean_fraction

AGREES, DIFFERS = 1.0, 0.0
"""What a tile says; NaN where it cannot tell."""

_TILES = 16
"""Tiles along the shorter axis, where they are not smaller than `_SMALLEST` pixels."""
_SMALLEST, _LARGEST = 12, 64
_FEWEST = 4
"""Tiles along an axis below which there is no map."""
_NOISY = 0.025
"""Variance of the noise of a bin, that of the scene being one, from which images are smoothed."""
_SIGMA = 1.5
"""Of the Gaussian that smooths, in bins."""
_UNSHARED = 0.3
"""Share of what a tile shows that frame and reference may not share."""
_DEVIATIONS = 6.0
"""Standard deviations of the noise by which a tile differs at least."""
_LEAST_OFFSET = 0.1
_SPREAD = 6.0
"""Displacements of tiles that differ are more than this many pixels and median deviations away from the median."""


@dataclass(frozen=True)
class Grid:
    """Square tiles over an image, an even number of pixels each; rows and columns beyond the last are left out."""

    shape: tuple[int, int]
    """Rows and columns of the image."""

    @property
    def size(self) -> int:
        """Rows and columns of a tile."""
        size = int(np.clip(min(self.shape) // _TILES, _SMALLEST, _LARGEST))
        return size - size % 2

    @property
    def count(self) -> tuple[int, int]:
        """Tiles along rows and columns; (0, 0) where the image is too small to ask."""
        rows, columns = (n // self.size for n in self.shape)
        return (rows, columns) if min(rows, columns) >= _FEWEST else (0, 0)


def agreement(images: Array, frames: Array, shifts: NDArray[np.float64]) -> NDArray[np.float32]:
    """Say which tiles of the reference agree with the shift of each frame.

    Parameters
    ----------
    images : ndarray, shape (1 or n, h, w)
        Reference images.
    frames : ndarray, shape (n, h, w)
    shifts : ndarray of float64, shape (n, 2)
        To be added to each frame; NaN where there is none.

    Returns
    -------
    ndarray of float32, shape (n, rows, columns)
        1 where a tile agrees, 0 where it differs, NaN where it shows too little to tell or the frame does not cover it.
    """
    grid = Grid((int(frames.shape[1]), int(frames.shape[2])))
    known: NDArray[np.bool_] = np.asarray(np.isfinite(shifts).all(axis=1))
    if not all(grid.count) or not known.any():
        return np.full((frames.shape[0], *grid.count), np.nan, dtype=np.float32)
    xp = array_namespace(frames)
    shifts = np.where(known[:, None], shifts, 0.0)
    whole = np.rint(shifts).astype(np.intp)
    size = grid.size // 2
    rows, columns = (size * n for n in grid.count)
    inside = xp.asarray(_inside(grid.shape, whole).astype(working_dtype(frames)))
    (f, of_frames), (g, of_reference) = _standard(frames, whole, inside), _standard(images)
    noise = xp.asarray(of_frames + of_reference)
    correlated = 1.0
    if max(of_frames.max(), of_reference.max()) > _NOISY:
        taps = named.gaussian(_SIGMA)
        f, g = (filter_frames(each, taps, dtype="same", count=False)[0] for each in (f, g))
        noise, correlated = noise / (4 * np.pi * _SIGMA**2), 2 * np.pi * _SIGMA**2
    f, g, inside = (each[:, :rows, :columns] for each in (f, g, inside))
    gy, gx = _slopes(g, 1), _slopes(g, 2)
    offset = xp.asarray(shifts - whole)[:, :, None, None].astype(f.dtype)
    rest = f - g - offset[:, 0] * gy - offset[:, 1] * gx
    ones = [xp.asarray(np.repeat(np.eye(n), size, axis=1).astype(f.dtype)) for n in grid.count]
    covered = _sums(inside, ones) > size * size - 0.5

    def total(*factors: Array) -> Array:
        """Sums of a product over each tile that is covered and those around it."""
        product = factors[0] if len(factors) == 1 else factors[0] * factors[1]
        return _around(_sums(product, ones) * covered)

    count = xp.maximum(total(xp.ones_like(f)), 1.0)
    mean_f, mean_g, mean_rest = total(f) / count, total(g) / count, total(rest) / count
    of_f, of_g = (total(a, a) / count - mean * mean for a, mean in ((f, mean_f), (g, mean_g)))
    unshared = total(rest, rest) / count - mean_rest * mean_rest
    a, b, c = (total(*pair) / count for pair in ((gy, gy), (gy, gx), (gx, gx)))
    p, q = (total(slope, rest) / count - total(slope) / count * mean_rest for slope in (gy, gx))
    determinant = a * c - b * b
    regular = determinant > 1e-6 * (a + c) ** 2
    safe = xp.where(regular, determinant, 1.0)
    dy, dx = (xp.where(regular, part / safe, 0.0) for part in (c * p - b * q, a * q - b * p))
    explained = p * dy + q * dx
    noise = noise[:, None, None]
    shown = xp.maximum((of_f + of_g) / 2 - noise / 2, 0.0)
    beyond = (unshared - explained - noise) / 2
    scatter = noise * xp.sqrt(correlated / count) * np.sqrt(0.5)
    says = covered & (shown > _DEVIATIONS * scatter) & (shown > 0.02 * shown.max(axis=(1, 2), keepdims=True))
    differs = (beyond > _UNSHARED * shown) & (beyond > _DEVIATIONS * scatter)
    chi_squared = explained * count / (noise * correlated + 1e-30)
    return _verdict(to_host(says), to_host(differs), to_host(dy), to_host(dx), to_host(chi_squared), known)


def _verdict(
    says: NDArray[np.bool_],
    differs: NDArray[np.bool_],
    dy: NDArray[np.float64],
    dx: NDArray[np.float64],
    chi_squared: NDArray[np.float64],
    known: NDArray[np.bool_],
) -> NDArray[np.float32]:
    """Tiles that show something else, or are displaced against most others by more than these scatter."""
    out = np.where(says, AGREES, np.nan).astype(np.float32)
    for t in np.flatnonzero(known):
        use = says[t] & ~differs[t]
        if use.any():
            y, x = (v - np.median(v[use]) for v in (dy[t], dx[t]))
            distance = np.hypot(y, x)
            least = max(_LEAST_OFFSET, _SPREAD * float(np.median(distance[use])))
            differs[t] |= use & (distance > least) & (chi_squared[t] > _DEVIATIONS**2)
        out[t][says[t] & differs[t]] = DIFFERS
    out[~known] = np.nan
    return out


def _standard(
    images: Array, whole: NDArray[np.intp] | None = None, inside: Array = 1
) -> tuple[Array, NDArray[np.float64]]:
    """Bins of images, moved by whole pixels (n, 2), and the variance of their noise.

    Their means are zero, and the variance of what is not noise is one. What is not `inside` the moved frame is zero.
    """
    xp = array_namespace(images)
    dtype = working_dtype(images)
    sample = images[:, ::4].astype(dtype)
    mean = sample.mean(axis=(1, 2), keepdims=True)
    sample = sample - mean
    variance = to_host((sample * sample).mean(axis=(1, 2), dtype=np.float64))
    clean = np.maximum(clean_fraction(images, variance), 1e-3)
    scale = xp.asarray(np.sqrt(np.where(variance > 0, variance, 1.0) * clean))[:, None, None].astype(dtype)
    bins = binned(images if whole is None else _moved(images, whole))
    return (bins - mean * inside) / scale, (1 - clean) / clean / 4


def _inside(shape: tuple[int, int], whole: NDArray[np.intp]) -> NDArray[np.float64]:
    """Share of each bin (n, h, w) that a frame covers when moved by whole pixels (n, 2)."""
    covered = []
    for axis, size in enumerate(shape):
        place = np.arange(size // 2 * 2) - whole[:, axis, None]
        covered.append(((place >= 0) & (place < size)).reshape(whole.shape[0], -1, 2).mean(axis=2))
    share: NDArray[np.float64] = covered[0][:, :, None] * covered[1][:, None]
    return share


def _moved(frames: Array, whole: NDArray[np.intp]) -> Array:
    """Frames (n, h, w) moved by whole pixels (n, 2); zero where nothing is known."""
    xp = array_namespace(frames)
    height, width = frames.shape[1:]
    moved = xp.zeros_like(frames)
    for i, (dy, dx) in enumerate(whole.tolist()):
        to = slice(max(dy, 0), height + min(dy, 0)), slice(max(dx, 0), width + min(dx, 0))
        of = slice(max(-dy, 0), height - max(dy, 0)), slice(max(-dx, 0), width - max(dx, 0))
        moved[i, *to] = frames[i, *of]
    return moved


def binned(images: Array) -> Array:
    """Means of 2 x 2 pixels."""
    rows, columns = images.shape[1] // 2 * 2, images.shape[2] // 2 * 2
    part, xp = images[:, :rows, :columns], array_namespace(images)
    pairs = xp.add(part[:, ::2], part[:, 1::2], dtype=working_dtype(images))
    return (pairs[:, :, ::2] + pairs[:, :, 1::2]) / 4


def _slopes(images: Array, axis: int) -> Array:
    """Central differences along an axis, in values per pixel; bins are two pixels. Zero on the rim."""
    xp = array_namespace(images)
    slope = xp.zeros_like(images)
    if axis == 1:
        slope[:, 1:-1] = (images[:, 2:] - images[:, :-2]) / 4
    else:
        slope[:, :, 1:-1] = (images[:, :, 2:] - images[:, :, :-2]) / 4
    return slope


def _sums(values: Array, ones: list[Array]) -> Array:
    """Sums over tiles of bins (n, h, w), by matrices of ones (tiles, h) and (tiles, w)."""
    return (ones[0] @ (values @ ones[1].T)).astype(np.float64)


def _around(tiles: Array) -> Array:
    """Sums over 3 x 3 tiles with weights 1/4, 1/2, 1 outwards in."""
    xp = array_namespace(tiles)
    padded = xp.pad(tiles, ((0, 0), (1, 1), (1, 1)))
    rows = padded[:, 1:-1] + (padded[:, :-2] + padded[:, 2:]) / 2
    return rows[:, :, 1:-1] + (rows[:, :, :-2] + rows[:, :, 2:]) / 2
