"""Vectors on a grid: which of them do not belong to their neighbours, and the smooth field through the others."""

from __future__ import annotations

import numpy as np
import scipy  # whose parts are loaded when they are asked for
from numpy.typing import NDArray

Floats = NDArray[np.float64]

OUTLIER = 3.0
"""Normalised median above which a vector does not belong to its neighbours."""
_NOISE_PX = 0.1
"""Pixels of scatter that neighbours have anyway (Westerweel and Scarano 2005)."""
_MIN_NEIGHBOURS = 3
"""Neighbours that a vector is compared with at least."""
_MAX_NEAR = 48
"""Values that a place is judged by: of those farther away nothing is left under the Gaussian."""
_SLOPE_PRIOR = 1e-3
"""Weight of no slope at all, of the weights' sum: it decides only where the places known lie on a line."""


def normalised_median(vectors: Floats, known: NDArray[np.bool_], noise: float = _NOISE_PX) -> Floats:
    """How far vectors (..., gy, gx, 2) are from the median of their neighbours, over the neighbours' own scatter.

    The normalised median test of Westerweel and Scarano 2005, doi 10.1007/s00348-005-0016-6: residual over the median
    residual of the eight neighbours plus `noise` pixels, the larger of both components. Neighbours that are not `known`
    (..., gy, gx) do not count; where fewer than three do, the answer is zero: nothing speaks against the vector.
    """
    gy, gx = known.shape[-2:]
    padded = np.full((*known.shape[:-2], gy + 2, gx + 2, 2), np.nan)
    padded[..., 1:-1, 1:-1, :] = np.where(known[..., None], vectors, np.nan)
    around = np.stack(
        [padded[..., dy : dy + gy, dx : dx + gx, :] for dy in range(3) for dx in range(3) if (dy, dx) != (1, 1)],
        axis=-1,
    )
    count = np.isfinite(around[..., :1, :]).sum(axis=-1)
    middle = _median(around, count)
    scatter = _median(np.abs(around - middle[..., None]), count)
    ratio = (np.abs(vectors - middle) / (scatter + noise)).max(axis=-1)
    return np.where((count[..., 0] >= _MIN_NEIGHBOURS) & np.isfinite(ratio), ratio, 0.0)


def _median(values: Floats, count: NDArray[np.intp]) -> Floats:
    """Median along the last axis, of which `count` values are known and the others NaN."""
    ordered = np.sort(values, axis=-1)  # NaN last
    places = np.stack([np.maximum(count - 1, 0) // 2, np.minimum(count // 2, values.shape[-1] - 1)], axis=-1)
    pair = np.take_along_axis(ordered, np.broadcast_to(places, (*values.shape[:-1], 2)), -1)
    return np.asarray(pair.mean(axis=-1))


def local_linear(places: Floats, values: Floats, weights: Floats, at: Floats, reach: float) -> Floats:
    """Smooth field at places (m, 2): around each the plane that fits values (n, 2) best, weighted by distance.

    Gaussian-weighted local-linear regression: the weight of a value is its own (n,), such as the inverse of its
    variance, times a Gaussian of its distance with the standard deviation `reach`, in the units of the places (n, 2).
    """
    used = np.flatnonzero(weights > 0)
    if not used.size:
        return np.zeros((len(at), 2))
    near, which = scipy.spatial.cKDTree(places[used]).query(at, k=np.arange(1, min(used.size, _MAX_NEAR) + 1))
    which = used[which]
    # Where nothing is near, the nearest counts all the same.
    gaussian = weights[which] * np.exp((near[:, :1] ** 2 - near**2) / (2 * reach**2))
    away = (places[which] - at[:, None]) / reach
    columns = np.concatenate([np.ones((*near.shape, 1)), away], axis=2)
    weighted = (columns * gaussian[..., None]).transpose(0, 2, 1)
    normal = weighted @ columns
    normal[:, [1, 2], [1, 2]] += _SLOPE_PRIOR * gaussian.sum(axis=1, keepdims=True)
    return np.asarray(np.linalg.solve(normal, weighted @ values[which])[:, 0])
