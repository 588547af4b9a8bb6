"""Passes of windows over two images, each from what the one before found, and vectors that neighbours replace."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy  # whose parts are loaded when they are asked for
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.field.measured_field import DisplacementField, slopes_of
from xcorr_app.registration.field.window_match import (
    MIN_VISIBLE,
    Search,
    WindowMatch,
    Windows,
    match_windows,
    refine_windows,
)
from xcorr_app.registration.solver.sampling import coefficients
from xcorr_app.registration.stack.passes import Pass
from xcorr_app.registration.standard_error.significance import MAX_FALSE_ALARM, medians_of
from xcorr_app.registration.warping.device_warp import ndimage_of
from xcorr_app.registration.warping.grid import Grid, pixel_bases, with_edges
from xcorr_app.registration.warping.warp import at_every_pixel, inside_frame, places_of

Floats = NDArray[np.float64]

_ROUNDS = 2
"""Of the median test: without the vectors that the first found, others may stand out."""
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


def compared(
    images: list[Array],
    grid: Grid,
    reach: int,
    before: DisplacementField | None,
    valid: Array | None,
    threshold: float,
) -> DisplacementField:
    """Compare all windows of a grid, the second image seen through what was found before."""
    first, second = images
    predicted = np.zeros((*grid.shape, 2))
    if before is not None:
        second, _, predicted = _seen_through(before, grid, second)
    place, window = grid.firsts, grid.rows.window
    masked = np.zeros(grid.shape, dtype=bool) if valid is None else _share(valid, grid) < MIN_VISIBLE

    def job(start: int, stop: int) -> WindowMatch:
        part = place[start:stop]
        windows = Windows(first, part, window, reach, valid)
        back = None if before is None else Windows(second, part, window, reach, valid)
        return match_windows([Search(windows, second, np.zeros_like(part))], back)

    walk = Pass(len(place), (window + 2 * reach) ** 2, array_namespace(first) is not np)
    match = WindowMatch.joined(list(walk.over("windows", job)))
    measured = match.shift.reshape(*grid.shape, 2) + predicted
    by_chance = (match.false_alarm > MAX_FALSE_ALARM).reshape(grid.shape)
    known = np.isfinite(measured).all(axis=2) & ~masked & ~by_chance & ~match.on_edge.reshape(grid.shape)
    field = DisplacementField(
        rows=grid.rows.middles,
        columns=grid.columns.middles,
        displacement=measured,
        sigma=np.full(measured.shape, np.nan),
        score=match.score.reshape(grid.shape),
        significance=match.significance.reshape(grid.shape),
        replaced=~known & ~masked,
        masked=masked,
    )
    return _replaced(field, threshold)


def _replaced(field: DisplacementField, threshold: float) -> DisplacementField:
    """Put the test of neighbours to a field and replace what is not to be trusted."""
    known = ~field.replaced & ~field.masked
    for _ in range(_ROUNDS):
        known &= normalised_median(field.displacement, known) <= threshold
    lost = ~known & ~field.masked
    good = np.where(field.masked[..., None], np.nan, _filled(field, known))
    return replace(field, displacement=good, replaced=lost)


def refined(
    images: list[Array], grid: Grid, field: DisplacementField, valid: Array | None, threshold: float, how: str
) -> DisplacementField:
    """Vectors fitted to the pixels of their windows, and their standard errors.

    `how`: windows move as one (``shift``), or are strained (``icgn``); ``none`` leaves vectors as they are.
    """
    (first, second), shape, known = images, grid.shape, ~field.replaced & ~field.masked
    start, slopes = np.where(known[..., None], field.displacement, np.nan), None
    if how == "none":
        # All pixels at once: windows overlap.
        second, seen, _ = _seen_through(field, grid, second)
        start, valid = np.zeros_like(start), seen if valid is None else seen & valid
    elif how == "icgn":
        start = _filled(field, np.asarray(np.isfinite(field.displacement).all(axis=2)))
        slopes = slopes_of(start, field.rows, field.columns).reshape(-1, 2, 2)
    found = refine_windows(
        [first, second], grid.firsts, grid.rows.window, start.reshape(-1, 2), slopes, valid, moves=how != "none"
    )
    converged = found.converged.reshape(shape) & ~field.masked
    vectors = np.where(converged[..., None], found.motion[:, :2, 2].reshape(*shape, 2), field.displacement)
    score = np.where(converged, found.score.reshape(shape), field.score)
    if how == "icgn":
        # A window that was lost before may have been found from what its neighbours say.
        field = _replaced(replace(field, displacement=vectors, replaced=~converged & ~field.masked), threshold)
        vectors, known = field.displacement, ~field.replaced & ~field.masked
        if kept := int((~converged & ~field.masked).sum()):
            note = f"icgn did not converge on {kept} of {converged.size} windows: their neighbours replace them."
            field = replace(field, notes=(*field.notes, note))
    variance = np.diagonal(found.covariance, axis1=1, axis2=2)[:, :2].reshape(*shape, 2)
    sigma = np.where(known[..., None], np.sqrt(variance), np.nan)
    return replace(field, displacement=vectors, score=score, sigma=sigma)


def _filled(field: DisplacementField, known: NDArray[np.bool_]) -> Floats:
    """The displacement, what is not known replaced by what the others say."""
    filled = field.displacement.copy()
    if not known.all():
        places, values = _places(field), field.displacement[known]
        filled[~known] = local_linear(places[known], values, np.ones(len(values)), places[~known], _spacing(field))
    return filled


def _seen_through(field: DisplacementField, grid: Grid, image: Array) -> tuple[Array, Array, Floats]:
    """An image (Y, X) moved by a field, which of its pixels lie in it, and the displacement (gy, gx, 2) of windows.

    The displacement is smooth, and carried on to the edges of the frame.
    """
    rows, columns = (with_edges(axis) for axis in (grid.rows, grid.columns))
    at = np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=2)
    known = np.isfinite(field.displacement).all(axis=2)
    values = field.displacement[known]
    nodes = local_linear(
        _places(field)[known], values, np.ones(len(values)), at.reshape(-1, 2), 0.5 * _spacing(field)
    ).reshape(at.shape)
    xp, bases = array_namespace(image), pixel_bases(rows, columns, image.shape)
    places = places_of(xp.asarray(at_every_pixel(np.moveaxis(nodes, 2, 0), bases), dtype=np.float32))
    splines = coefficients(image[None])[0]
    moved = ndimage_of(xp).map_coordinates(splines, places, order=3, mode="nearest", prefilter=False)
    of_windows = np.ix_(np.isin(rows, grid.rows.middles), np.isin(columns, grid.columns.middles))
    return moved, inside_frame(places, image.shape), nodes[of_windows]


def _places(field: DisplacementField) -> Floats:
    return np.stack(np.meshgrid(field.rows, field.columns, indexing="ij"), axis=2)


def _spacing(field: DisplacementField) -> float:
    """Pixels between neighbours, the larger of both axes."""
    return max((float(np.diff(axis).mean()) for axis in (field.rows, field.columns) if axis.size > 1), default=1.0)


def _share(valid: Array, grid: Grid) -> Floats:
    """Share (gy, gx) of each window that is not masked."""
    pixels, (rows, columns) = np.arange(max(valid.shape)), (grid.rows, grid.columns)
    within = [np.abs(pixels[: axis.size] - axis.middles[:, None]) < axis.window / 2 for axis in (rows, columns)]
    return np.asarray(within[0] @ to_host(valid).astype(np.float64) @ within[1].T / (rows.window * columns.window))


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
    middle = medians_of(around.reshape(-1, 8).copy()).reshape(around.shape[:-1])
    scatter = medians_of(np.abs(around - middle[..., None]).reshape(-1, 8)).reshape(middle.shape)
    ratio = (np.abs(vectors - middle) / (scatter + noise)).max(axis=-1)
    return np.where((count[..., 0] >= _MIN_NEIGHBOURS) & np.isfinite(ratio), ratio, 0.0)


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
