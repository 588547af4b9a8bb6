"""Does a frame turn, shrink or shear beside its shift? A linear motion fitted to the slopes of all its tiles.

To first order a frame moved by its shift differs from its reference g by D d(x), D being the slopes of g. With d linear
in the place x, least squares on the sums over tiles give its six numbers (Lucas and Kanade 1981), and the scatter of
what they leave among tiles how sure they are, as in :mod:`xcorr_app.registration.standard_error.uncertainty`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MIN_CHI_SQUARED = 40.0
"""Of the four numbers beside the shift: five standard deviations are 35, but those of few tiles are uncertain."""
MIN_TILES = 12
"""Tiles below which their scatter says nothing."""
RIDGE = 1e-9

Floats = NDArray[np.float64]


def edge_offsets(sums: Floats, covered: NDArray[np.bool_], size: int, shape: tuple[int, int]) -> Floats:
    """Pixels (n,) by which the linear part moves the middle of an edge against the centre, 0 where it may be chance.

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
    design = (place[:, None, :, None] * np.eye(2)[:, None]).reshape(-1, 2, 6)
    take = covered.reshape(count, -1)
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
    return np.array([_edge_offset(*each, design) for each in zip(normal, right, take.sum(axis=1), strict=True)])


def _edge_offset(normal: Floats, right: Floats, tiles: int, design: Floats) -> float:
    """Of one frame, by the equations of its tiles (k, 2, 2) and (k, 2)."""
    if tiles < MIN_TILES:
        return 0.0
    turned = np.swapaxes(design, 1, 2)
    left = turned @ normal
    matrix = (left @ design).sum(axis=0)
    matrix += RIDGE * np.trace(matrix) * np.eye(6)
    if not np.isfinite(matrix).all() or not np.trace(matrix) > 0:
        return 0.0
    numbers = np.linalg.solve(matrix, (turned @ right[..., None]).sum(axis=0)[:, 0])
    scores = (turned @ (right - normal @ design @ numbers)[..., None])[..., 0]
    inverse = np.linalg.inv(matrix)
    covariance = inverse @ (scores.T @ scores) @ inverse * (tiles / (tiles - 6))
    linear = numbers[2:]
    if linear @ np.linalg.solve(covariance[2:, 2:] + 1e-300 * np.eye(4), linear) < MIN_CHI_SQUARED:
        return 0.0
    return float(np.hypot(*linear.reshape(2, 2).T).max())
