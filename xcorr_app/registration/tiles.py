"""Does the frame move as one? Which tiles of it agree with the shift, and which move otherwise.

A frame moved by its shift shows the reference. In each tile (sums over 3 x 3 of them, binomial weights) the two are
compared: what they do not share, beyond what their noise accounts for and a small displacement of its own explains,
against what they show; and that displacement against its standard error (least squares on the slopes of the
reference: Lucas and Kanade 1981). Both are looked at in bins of 2 x 2 pixels, smoothed where they are noisy. A frame
that is brighter or darker than the reference, all over or in places, agrees all the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.filtering import named
from xcorr_app.filtering.convolve import filter_frames
from xcorr_app.filtering.taps import Filter
from xcorr_app.gpu.peaks.tile_sums import tile_bins, tile_levels, tile_places, tile_sums
from xcorr_app.gpu.peaks.tile_verdict import MAX_TILES, Limits, Verdict, started_verdict
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array, to_host
from xcorr_app.gpu.runtime.types import INPUT_TYPES, name_of
from xcorr_app.registration.linear_motion import FEWEST, MIN_CHI_SQUARED, RIDGE, edge_offsets
from xcorr_app.registration.quality import NOISE_PERIOD, clean_fraction

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
_CORRELATED = 2 * np.pi * _SIGMA**2
"""Bins that the noise of one reaches then."""
_UNSHARED = 0.3
"""Share of what a tile shows that frame and reference may not share."""
_ALIKE, _NEARLY_ALL, _FEWEST_TOLD = 0.3, 0.85, 8
"""Correlation of a tile from which frame and reference have something in common; share of tiles in which they are
correlated at all from which all of these have, since of another scene half are; and tiles for a share of them."""
_DEVIATIONS = 6.0
"""Standard deviations of the noise by which a tile differs at least."""
_MIN_OFFSET = 0.1
_SAMPLED = 4
"""One of so many rows tells the mean and the variance of an image."""
_MIN_CLEAN = 1e-3
_SPREAD = 6.0
"""Displacements of tiles that differ are more than this many pixels and median deviations away from the median."""
_FAR = 1.0
"""Pixels beyond which it differs however much the others scatter."""
_MIN_SHOWN = 0.02
"""Of the most that any tile shows."""
_LIMITS = Limits(
    _UNSHARED,
    _DEVIATIONS,
    _MIN_SHOWN,
    _ALIKE,
    _MIN_OFFSET,
    _SPREAD,
    _FAR,
    _FEWEST_TOLD,
    _NEARLY_ALL,
    MIN_CHI_SQUARED,
    RIDGE,
    FEWEST,
    _CORRELATED,
)


@dataclass(frozen=True)
class Grid:
    """Square tiles over an image, an even number of pixels each; rows and columns beyond the last are left out."""

    shape: tuple[int, int]
    """Rows and columns of the image."""

    @functools.cached_property
    def size(self) -> int:
        """Rows and columns of a tile."""
        size = min(max(min(self.shape) // _TILES, _SMALLEST), _LARGEST)
        return size - size % 2

    @functools.cached_property
    def count(self) -> tuple[int, int]:
        """Tiles along rows and columns; (0, 0) where the image is too small to ask."""
        rows, columns = (n // self.size for n in self.shape)
        return (rows, columns) if min(rows, columns) >= _FEWEST else (0, 0)


@dataclass(frozen=True)
class Look:
    """What the tiles of n frames say about their shifts."""

    tiles: NDArray[np.float32]
    """(n, rows, columns) 1 where a tile agrees, 0 where it differs, NaN where it shows too little to tell or the frame
    does not cover it."""
    alike: NDArray[np.float64]
    """(n,) share of those that can tell in which frame and reference resemble each other; NaN where few can."""
    edges: NDArray[np.float64]
    """(n,) pixels by which turning, scale and shear move the edge against the centre; 0 where chance may do as much."""


def agreement(images: Array, frames: Array, shifts: NDArray[np.float64]) -> NDArray[np.float32]:
    """Say which tiles (n, rows, columns) agree: `Look.tiles` of :func:`look`."""
    return look(images, frames, shifts).tiles


@dataclass(frozen=True)
class Levels:
    """On a device: level, gain and noise of a bin, of frames (n, 3) and of the references they are compared with."""

    of_frames: Array
    of_references: Array


def started_levels(images: Array, frames: Array) -> Levels | None:
    """Begin with what :func:`look` needs to know of images and frames beside shifts; None where that is no kernel's."""
    grid = Grid((int(frames.shape[1]), int(frames.shape[2])))
    if not _by_kernels(frames, images) or not 0 < grid.count[0] * grid.count[1] <= MAX_TILES:
        return None
    return Levels(*tile_levels(frames, images, _SAMPLED, min(NOISE_PERIOD, grid.shape[0]), _MIN_CLEAN))


def look(
    images: Array,
    frames: Array,
    shifts: NDArray[np.float64],
    covered: NDArray[np.bool_] | None = None,
    *,
    levels: Levels | None = None,
) -> Look:
    """Compare the tiles of the reference with each frame at its shift.

    Parameters
    ----------
    images : ndarray, shape (1 or n, h, w)
        Reference images.
    frames : ndarray, shape (n, h, w)
    shifts : ndarray of float64, shape (n, 2)
        To be added to each frame; NaN where there is none.
    covered : ndarray of bool, shape (n, rows, columns), optional
        Tiles that a frame shows, where it is more than shifted.
    levels : Levels, optional
        What `started_levels` began with.
    """
    return started_look(images, frames, shifts, covered, levels=levels)()


def started_look(
    images: Array,
    frames: Array,
    shifts: NDArray[np.float64],
    covered: NDArray[np.bool_] | None = None,
    *,
    levels: Levels | None = None,
) -> Callable[[], Look]:
    """Begin with :func:`look`; what is returned waits for a device."""
    count, grid = int(frames.shape[0]), Grid((int(frames.shape[1]), int(frames.shape[2])))
    known: NDArray[np.bool_] = np.asarray(np.isfinite(shifts).all(axis=1))
    if not all(grid.count) or not known.any():
        nothing = Look(np.full((count, *grid.count), np.nan, dtype=np.float32), np.full(count, np.nan), np.zeros(count))
        return lambda: nothing
    if covered is None and (levels := levels or started_levels(images, frames)) is not None:
        return _looked_at_by_kernels(images, frames, np.where(known[:, None], shifts, np.nan), grid, levels)
    shifts = np.where(known[:, None], shifts, 0.0)
    whole = np.rint(shifts).astype(np.intp)
    (f, of_frames), (g, of_reference) = _both_standard(frames, images, whole)
    noise, correlated = of_frames + of_reference, 1.0
    if max(of_frames.max(), of_reference.max()) > _NOISY:
        f, g = (_smoothed(each) for each in (f, g))
        noise, correlated = noise / (2 * _CORRELATED), _CORRELATED
    sums = _tile_sums(f, g, shifts - whole, grid.size // 2, grid.count)
    covered = _covered_by(grid.shape, grid.size, grid.count, whole) if covered is None else covered
    tiles, alike = _judged(sums, covered, (grid.size // 2) ** 2, noise, correlated, known)
    edges = edge_offsets(sums, covered & known[:, None, None], grid.size, grid.shape)
    return lambda: Look(tiles, alike, edges)


def _by_kernels(*images: Array) -> bool:
    return all(is_device_array(each) and name_of(each.dtype) in INPUT_TYPES for each in images)


def look_by_written(images: Array, frames: Array, written: Array, numbers: Array) -> Callable[[], Look] | None:
    """:func:`started_look` at frames (n, h, w) on a device before the host knows their shifts; None if not by kernels.

    The device has `written` these of all frames (see :mod:`xcorr_app.gpu.peaks.frame_peaks`), of which `numbers` (n,)
    are looked at.
    """
    grid = Grid((int(frames.shape[1]), int(frames.shape[2])))
    levels = started_levels(images, frames)
    if levels is None:
        return None
    return _judged_by_kernels(images, frames, *tile_places(written, numbers, images.shape[0]), grid, levels)


def _looked_at_by_kernels(
    images: Array, frames: Array, shifts: NDArray[np.float64], grid: Grid, levels: Levels
) -> Callable[[], Look]:
    """:func:`started_look` on a device, which is waited for once unless there is much noise."""
    xp, none, count = array_namespace(frames), np.zeros((images.shape[0], 2)), frames.shape[0]
    whole = np.rint(shifts)
    # Brought to the device together: each array takes as long as a launch.
    places = np.concatenate([np.nan_to_num(whole), none]).astype(np.int32)
    numbers = xp.asarray(np.concatenate([shifts - whole, places.view(np.float64)], axis=None))
    offsets, places = numbers[: 2 * count].reshape(count, 2), numbers[2 * count :].view(np.int32).reshape(-1, 2)
    return _judged_by_kernels(images, frames, places, offsets, grid, levels)


def _judged_by_kernels(
    images: Array, frames: Array, places: Array, offsets: Array, grid: Grid, levels: Levels
) -> Callable[[], Look]:
    """The same by whole shifts (n + m, 2) of frames and images, and what is left (n, 2), on the device."""
    count, both = frames.shape[0], (levels.of_frames, levels.of_references)
    f, g = tile_bins(frames, places[:count], both[0]), tile_bins(images, places[count:], both[1])

    def verdict(f: Array, g: Array, *, smoothed: bool) -> Callable[[], Verdict]:
        sums = tile_sums(f, g, offsets, grid.size // 2, grid.count)
        return started_verdict(sums, places, offsets, both, grid.shape, grid.size, _LIMITS, smoothed=smoothed)

    started = verdict(f, g, smoothed=False)

    def finished() -> Look:
        found = started()
        if found.noise.max() > _NOISY:
            found = verdict(_smoothed(f), _smoothed(g), smoothed=True)()
        return Look(found.tiles, found.alike, found.edges)

    return finished


def _smoothed(bins: Array) -> Array:
    return filter_frames(bins, _smoothing(), dtype="same", count=False)[0]


@functools.cache
def _smoothing() -> Filter:
    """One filter for all calls: a device's plans are kept by it."""
    return named.gaussian(_SIGMA)


def _tile_sums(
    f: Array, g: Array, offsets: NDArray[np.float64], size: int, tiles: tuple[int, int]
) -> NDArray[np.float64]:
    """Sums over tiles (13, n, rows, columns) of bins of frames f (n, h, w) and of references g (1 or n, h, w).

    Of f, g, r, their squares, gy^2, gy gx, gx^2, gy r, gx r, gy and gx; gy and gx are the slopes of g, and r is
    f - g - oy gy - ox gx with (oy, ox) the `offsets` (n, 2).
    """
    xp = array_namespace(f)
    rows, columns = (size * n for n in tiles)
    f, g = (each[:, :rows, :columns] for each in (f, g))
    gy, gx = _slopes(g, 1), _slopes(g, 2)
    offset = xp.asarray(offsets)[:, :, None, None].astype(f.dtype)
    rest = f - g - offset[:, 0] * gy - offset[:, 1] * gx
    ones = [xp.asarray(np.repeat(np.eye(n), size, axis=1).astype(f.dtype)) for n in tiles]
    squares, slopes = ((each, each) for each in (f, g, rest)), ((gy, gy), (gy, gx), (gx, gx))
    kinds = ((f,), (g,), (rest,), *squares, *slopes, (gy, rest), (gx, rest), (gy,), (gx,))
    products = (kind[0] if len(kind) == 1 else kind[0] * kind[1] for kind in kinds)
    shape = f.shape[0], *tiles
    return np.stack([np.broadcast_to(to_host(_sums(product, ones)), shape) for product in products])


def _judged(
    sums: NDArray[np.float64],
    covered: NDArray[np.bool_],
    bins: int,
    noise: NDArray[np.float64],
    reached: float,
    known: NDArray[np.bool_],
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """What tiles say by their `_tile_sums`, those that frames cover (n, rows, columns), and the bins of one.

    The noise of a bin reaches so many others.
    """
    count = np.maximum(_around(bins * covered.astype(np.float64)), 1.0)
    # Sums over each tile that is covered and those around it.
    means = _around((sums * covered).reshape(-1, *covered.shape[1:])).reshape(sums.shape) / count
    mean_f, mean_g, mean_rest, of_f, of_g, of_rest, a, b, c, p, q, mean_gy, mean_gx = means
    of_f, of_g = of_f - mean_f * mean_f, of_g - mean_g * mean_g
    unshared = of_rest - mean_rest * mean_rest
    p, q = p - mean_gy * mean_rest, q - mean_gx * mean_rest
    determinant = a * c - b * b
    regular = determinant > 1e-6 * (a + c) ** 2
    safe = np.where(regular, determinant, 1.0)
    dy, dx = (np.where(regular, part / safe, 0.0) for part in (c * p - b * q, a * q - b * p))
    explained = p * dy + q * dx
    noise = noise[:, None, None]
    shown = np.maximum((of_f + of_g) / 2 - noise / 2, 0.0)
    beyond = (unshared - explained - noise) / 2
    scatter = noise * np.sqrt(reached / count) * np.sqrt(0.5)
    says = covered & (shown > _DEVIATIONS * scatter) & (shown > _MIN_SHOWN * shown.max(axis=(1, 2), keepdims=True))
    differs = (beyond > _UNSHARED * shown) & (beyond > _DEVIATIONS * scatter)
    chi_squared = explained * count / (noise * reached + 1e-30)
    # Whatever the gain: something bright elsewhere in a frame makes all the rest of it seem faint.
    shared = np.where(says, of_f + of_g - unshared, 0.0)
    alike = (shared > 2 * _ALIKE * np.sqrt(np.maximum(of_f * of_g, 0.0))).sum(axis=(1, 2))
    told, correlated = says.sum(axis=(1, 2)), (shared > 0).sum(axis=(1, 2))
    alike = np.where(correlated >= _NEARLY_ALL * told, correlated, alike)
    share = np.where(known & (told >= _FEWEST_TOLD), alike / np.maximum(told, 1), np.nan)
    return _verdict(says, differs, dy, dx, chi_squared, known), share


def _verdict(
    says: NDArray[np.bool_],
    differs: NDArray[np.bool_],
    dy: NDArray[np.float64],
    dx: NDArray[np.float64],
    chi_squared: NDArray[np.float64],
    known: NDArray[np.bool_],
) -> NDArray[np.float32]:
    """Tiles that show something else, or are displaced against most others by more than these scatter."""
    use = says & ~differs
    y, x = (each - _medians(each, use) for each in (dy, dx))
    distance = np.hypot(y, x)
    with np.errstate(invalid="ignore"):
        least = np.maximum(_MIN_OFFSET, np.minimum(_SPREAD * _medians(distance, use), _FAR))
        differs = differs | (use & (distance > least) & (chi_squared > _DEVIATIONS**2))
    out = np.where(says, np.where(differs, DIFFERS, AGREES), np.nan).astype(np.float32)
    out[~known] = np.nan
    return out


def _medians(values: NDArray[np.float64], use: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Median (n, 1, 1) of those of each frame's values (n, rows, columns) that are used; NaN where none is."""
    ordered = np.sort(np.where(use, values, np.nan).reshape(len(values), -1), axis=1)  # NaN last
    count = use.sum(axis=(1, 2))
    frame = np.arange(len(values))
    middle: NDArray[np.float64] = (ordered[frame, np.maximum(count - 1, 0) // 2] + ordered[frame, count // 2]) / 2
    return np.where(count > 0, middle, np.nan)[:, None, None]


def _both_standard(
    frames: Array, images: Array, whole: NDArray[np.intp]
) -> tuple[tuple[Array, NDArray[np.float64]], tuple[Array, NDArray[np.float64]]]:
    """`_standard` of frames that are moved, and of the images they are compared with."""
    inside = array_namespace(frames).asarray(_inside(frames.shape[1:], whole).astype(working_dtype(frames)))
    return _standard(frames, whole, inside), _standard(images)


def _standard(
    images: Array, whole: NDArray[np.intp] | None = None, inside: Array = 1
) -> tuple[Array, NDArray[np.float64]]:
    """Bins of images, moved by whole pixels (n, 2), and the variance of their noise.

    Their means are zero, and the variance of what is not noise is one. What is not `inside` the moved frame is zero.
    """
    xp = array_namespace(images)
    dtype = working_dtype(images)
    sample = images[:, ::_SAMPLED].astype(dtype)
    mean = sample.mean(axis=(1, 2), keepdims=True)
    sample = sample - mean
    variance = to_host((sample * sample).mean(axis=(1, 2), dtype=np.float64))
    clean = np.maximum(clean_fraction(images, variance), _MIN_CLEAN)
    scale = xp.asarray(np.sqrt(np.where(variance > 0, variance, 1.0) * clean))[:, None, None].astype(dtype)
    bins = binned(images if whole is None else _moved(images, whole))
    return (bins - mean * inside) / scale, (1 - clean) / clean / 4


def _covered_by(
    shape: tuple[int, int], size: int, tiles: tuple[int, int], whole: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """(n, rows, columns) whether frames of a shape, moved by whole pixels (n, 2), cover a tile of a size."""
    covered = []
    for axis, (pixels, count) in enumerate(zip(shape, tiles, strict=True)):
        first = size * np.arange(count)
        begin, end = np.maximum(whole[:, axis, None], 0), pixels + np.minimum(whole[:, axis, None], 0)
        covered.append((first >= begin) & (first + size <= end))
    both: NDArray[np.bool_] = covered[0][:, :, None] & covered[1][:, None]
    return both


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
