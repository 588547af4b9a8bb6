"""By which rules a tile agrees with the shift of its frame, see :mod:`xcorr_app.registration.parts.tiles`."""

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.peaks.tile_verdict import Limits
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.standard_error.significance import medians_of

MIN_CHI_SQUARED = 40.0
"""Of the four numbers beside the shift: five standard deviations are 35, but those of few tiles are uncertain."""
MIN_TILES = 12
"""Tiles below which their scatter says nothing."""
RIDGE = 1e-9

Floats = NDArray[np.float64]


def edge_offsets(sums: Floats, covered: NDArray[np.bool_], size: int, shape: tuple[int, int]) -> Floats:
    """Pixels (n,) by which the linear part moves the middle of an edge against the centre, 0 where it may be chance.

    To first order a frame moved by its shift differs from its reference g by D d(x), D being the slopes of g. With d
    linear in the place x, least squares on the sums over tiles give its six numbers (Lucas and Kanade 1981), and the
    scatter of what they leave among tiles how sure they are.

    Parameters
    ----------
    sums : ndarray, shape (13, n, rows, columns)
        Over tiles, as :mod:`xcorr_app.registration.parts.tiles` takes them.
    covered : ndarray of bool, shape (n, rows, columns)
        Tiles that take part.
    size : int
        Rows and columns of a tile, in pixels; bins are two.
    shape : tuple of int
        Of the image.
    """
    bins = (size // 2) ** 2
    rest, a, b, c, p, q, gy, gx = (sums[k] / bins for k in (2, 6, 7, 8, 9, 10, 11, 12))
    normal = np.stack([a - gy * gy, b - gy * gx, b - gy * gx, c - gx * gx], axis=-1).reshape(*a.shape, 2, 2)
    right = np.stack([p - gy * rest, q - gx * rest], axis=-1)
    count, rows, columns = a.shape
    # Places are counted from the middle of the image, half a side being one.
    y, x = (
        ((np.arange(tiles) + 0.5) * size - pixels / 2) / (pixels / 2)
        for tiles, pixels in zip((rows, columns), shape, strict=True)
    )
    place = np.stack([np.ones((rows, columns)), *np.meshgrid(y, x, indexing="ij")], axis=-1).reshape(-1, 3)
    tiles = covered.sum(axis=(1, 2))
    normal, right = (
        (each * covered.reshape(*covered.shape, *(1,) * (each.ndim - 3))).reshape(
            count, rows * columns, *each.shape[3:]
        )
        for each in (normal, right)
    )
    # No tile counts for much more than the others: few bright things would leave nothing to tell chance by.
    shown = np.trace(normal, axis1=2, axis2=3)
    weight = 1 / np.maximum(shown + shown.mean(axis=1, keepdims=True), 1e-300)
    normal, right = normal * weight[..., None, None], right * weight[..., None]
    # Of the numbers the shift comes first, then what is along rows, then along columns.
    squares = (place[:, :, None] * place[:, None]).reshape(-1, 9).T @ normal.reshape(count, -1, 4)
    matrix = squares.reshape(count, 3, 3, 2, 2).swapaxes(2, 3).reshape(count, 6, 6)
    size_of = np.trace(matrix, axis1=1, axis2=2)[:, None, None]
    known = (tiles >= MIN_TILES) & np.isfinite(matrix).all(axis=(1, 2)) & (size_of > 0)[:, 0, 0]
    matrix = np.where(known[:, None, None], matrix + RIDGE * size_of * np.eye(6), np.eye(6))
    inverse = np.linalg.inv(matrix)
    numbers = np.linalg.solve(matrix, np.nan_to_num(place.T @ right).reshape(count, 6, 1)).reshape(count, 3, 2)
    rest = right - (normal @ (place @ numbers)[..., None])[..., 0]
    scores = (place[:, :, None] * rest[:, :, None]).reshape(count, -1, 6)
    scatter = (inverse @ (scores.swapaxes(1, 2) @ scores) @ inverse)[:, 2:, 2:]
    covariance = scatter * (tiles / np.maximum(tiles - 6, 1))[:, None, None] + 1e-300 * np.eye(4)
    linear = np.where(known[:, None, None], numbers[:, 1:], 0.0)
    covariance = np.where(known[:, None, None], covariance, np.eye(4))
    squared = (linear.reshape(count, 1, 4) @ np.linalg.solve(covariance, linear.reshape(count, 4, 1))).ravel()
    return np.asarray(np.where(squared < MIN_CHI_SQUARED, 0.0, np.hypot(linear[..., 0], linear[..., 1]).max(axis=1)))


AGREES, DIFFERS = 1.0, 0.0
"""What a tile says; NaN where it cannot tell."""
NOISY = 0.025
"""Variance of the noise of a bin, that of the scene being one, from which images are smoothed."""
SIGMA = 1.5
"""Of the Gaussian that smooths, in bins."""
CORRELATED = 2 * np.pi * SIGMA**2
"""Bins that the noise of one reaches then."""
_UNSHARED = 0.3
"""Share of what a tile shows that frame and reference may not share."""
_MIN_CORRELATION, _NEARLY_ALL, _MIN_TELLING = 0.3, 0.85, 8
"""Correlation of a tile from which frame and reference have something in common; share of tiles in which they are
correlated at all from which all of these have, since of another scene half are; and tiles for a share of them."""
_DEVIATIONS = 6.0
"""Standard deviations of the noise by which a tile differs at least."""
_MIN_OFFSET = 0.1
_SPREAD = 6.0
"""Displacements of tiles that differ are more than this many pixels and median deviations away from the median."""
_FAR = 1.0
"""Pixels beyond which it differs however much the others scatter."""
_MIN_SHOWN = 0.02
"""Of the most that any tile shows."""
LIMITS = Limits(
    _UNSHARED,
    _DEVIATIONS,
    _MIN_SHOWN,
    _MIN_CORRELATION,
    _MIN_OFFSET,
    _SPREAD,
    _FAR,
    _MIN_TELLING,
    _NEARLY_ALL,
    MIN_CHI_SQUARED,
    RIDGE,
    MIN_TILES,
    CORRELATED,
)


def judged(
    sums: NDArray[np.float64],
    covered: NDArray[np.bool_],
    bins: int,
    noise: NDArray[np.float64],
    reached: float,
    known: NDArray[np.bool_],
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """What tiles say by their `sums_over_tiles`, those that frames cover (n, rows, columns), and the bins of one.

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
    inlier_fraction = (shared > 2 * _MIN_CORRELATION * np.sqrt(np.maximum(of_f * of_g, 0.0))).sum(axis=(1, 2))
    told, correlated = says.sum(axis=(1, 2)), (shared > 0).sum(axis=(1, 2))
    inlier_fraction = np.where(correlated >= _NEARLY_ALL * told, correlated, inlier_fraction)
    share = np.where(known & (told >= _MIN_TELLING), inlier_fraction / np.maximum(told, 1), np.nan)
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
    least = np.maximum(_MIN_OFFSET, np.minimum(_SPREAD * _medians(distance, use), _FAR))
    differs = differs | (use & (distance > least) & (chi_squared > _DEVIATIONS**2))
    out = np.where(says, np.where(differs, DIFFERS, AGREES), np.nan).astype(np.float32)
    out[~known] = np.nan
    return out


def _medians(values: NDArray[np.float64], use: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Median (n, 1, 1) of those of each frame's values (n, rows, columns) that are used; NaN where none is."""
    return np.asarray(medians_of(np.where(use, values, np.nan).reshape(len(values), -1))[:, None, None])


def _around(tiles: Array) -> Array:
    """Sums over 3 x 3 tiles with weights 1/4, 1/2, 1 outwards in."""
    xp = array_namespace(tiles)
    padded = xp.pad(tiles, ((0, 0), (1, 1), (1, 1)))
    rows = padded[:, 1:-1] + (padded[:, :-2] + padded[:, 2:]) / 2
    return rows[:, :, 1:-1] + (rows[:, :, :-2] + rows[:, :, 2:]) / 2
