"""Passes of windows over two images, each from what the one before found, and vectors that neighbours replace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.field.measured_field import DisplacementField, slopes_of
from xcorr_app.registration.field.smooth_field import local_linear, normalised_median
from xcorr_app.registration.field.window_icgn import RefinedWindows, refine_windows
from xcorr_app.registration.field.window_match import WindowMatch, Windows, match_windows
from xcorr_app.registration.field.window_shifts import refine_shifts
from xcorr_app.registration.standard_error.significance import MAX_FALSE_ALARM
from xcorr_app.registration.warping.displacement import at_every_pixel, places_of
from xcorr_app.registration.warping.grid import Grid, pixel_bases, with_edges
from xcorr_app.registration.warping.ndimage import ndimage_of

Floats = NDArray[np.float64]

_MIN_SEEN = 0.5
"""Share of a window that must not be masked."""
_ROUNDS = 2
"""Of the median test: without the vectors that the first found, others may stand out."""


def compared(
    images: list[Array],
    grid: Grid,
    reach: int,
    before: DisplacementField | None,
    seen: Array | None,
    threshold: float,
) -> DisplacementField:
    """Compare all windows of a grid, the second image seen through what was found before."""
    first, second = images
    predicted = np.zeros((*grid.shape, 2))
    if before is not None:
        pixels = _at_pixels(before, grid, first.shape)
        xp = array_namespace(first)
        splines = ndimage_of(xp).spline_filter(second, order=3, output=np.float32, mode="mirror")
        places = places_of(xp.asarray(pixels, dtype=np.float32))
        second = ndimage_of(xp).map_coordinates(splines, places, order=3, mode="nearest", prefilter=False)
        predicted = _at_points(pixels, grid)
    rows, columns = _firsts(grid)
    window = grid.rows.window
    share = np.ones(grid.shape)
    if seen is not None:
        share = _share(seen, grid)
    nowhere = np.zeros((len(rows), 2), dtype=np.intp)
    windows = Windows(first, rows, columns, window, reach, seen)
    back = None if before is None else Windows(second, rows, columns, window, reach, seen)
    match = match_windows(windows, second, nowhere, back=back)
    return _validated(match, grid, predicted, share < _MIN_SEEN, threshold)


def _validated(
    match: WindowMatch, grid: Grid, predicted: Floats, masked: NDArray[np.bool_], threshold: float
) -> DisplacementField:
    measured = match.shift.reshape(*grid.shape, 2) + predicted
    with np.errstate(invalid="ignore"):
        by_chance = (match.false_alarm > MAX_FALSE_ALARM).reshape(grid.shape)
    known = np.isfinite(measured).all(axis=2) & ~masked & ~by_chance & ~match.on_edge.reshape(grid.shape)
    shape = grid.shape
    field = DisplacementField(
        rows=grid.rows.middles,
        columns=grid.columns.middles,
        displacement=measured,
        sigma=np.full((*shape, 2), np.nan),
        score=match.score.reshape(shape),
        significance=match.significance.reshape(shape),
        replaced=~known & ~masked,
        masked=masked,
    )
    return _replaced(field, threshold)


def _replaced(field: DisplacementField, threshold: float) -> DisplacementField:
    """Put the test of neighbours to a field and replace what is not to be trusted."""
    known = ~field.replaced & ~field.masked
    for _ in range(_ROUNDS):
        known &= normalised_median(field.displacement, known) <= threshold
    good = field.displacement.copy()
    lost = ~known & ~field.masked
    if lost.any():
        places = _places(field)
        reach = _spacing(field)
        values = field.displacement[known]
        good[lost] = local_linear(places[known], values, np.ones(len(values)), places[lost], reach)
    good[field.masked] = np.nan
    return replace(field, displacement=good, replaced=lost)


def with_shifts_refined(
    images: list[Array], grid: Grid, field: DisplacementField, seen: Array | None
) -> DisplacementField:
    """The vectors of a single pass, and their standard errors, by a fit of each window's shift to its pixels."""
    rows, columns = _firsts(grid)
    known = ~field.replaced & ~field.masked
    start = np.where(known[..., None], field.displacement, np.nan).reshape(-1, 2)
    found = refine_shifts(images[0], images[1], rows, columns, grid.rows.window, start, seen)
    settled = found.settled.reshape(grid.shape)
    return replace(
        field,
        displacement=np.where(settled[..., None], found.shift.reshape(*grid.shape, 2), field.displacement),
        sigma=np.where(known[..., None], found.sigma.reshape(*grid.shape, 2), np.nan),
        score=np.where(settled, found.score.reshape(grid.shape), field.score),
    )


def with_last_step(
    images: list[Array],
    grid: Grid,
    field: DisplacementField,
    seen: Array | None,
    threshold: float,
    refine: str,
) -> DisplacementField:
    """Standard errors of the vectors, and with ``icgn`` the vectors refined."""
    rows, columns = _firsts(grid)
    filled = _filled(field)
    slopes = slopes_of(filled, field.rows, field.columns).reshape(-1, 2, 2)
    at = filled.reshape(-1, 2)
    steps: dict[str, Any] = {"counts": seen} if refine == "icgn" else {"counts": seen, "steps": 0}
    found: RefinedWindows = refine_windows(images[0], images[1], rows, columns, grid.rows.window, at, slopes, **steps)
    shape = grid.shape
    notes = field.notes
    if refine == "icgn":
        settled = found.settled.reshape(shape) & ~field.masked
        vectors = np.where(settled[..., None], found.shift.reshape(*shape, 2), field.displacement)
        # A window that was lost before may have been found from what its neighbours say.
        field = replace(field, displacement=vectors, replaced=~settled & ~field.masked)
        field = _replaced(field, threshold)
        score = np.where(settled, found.score.reshape(shape), field.score)
        field = replace(field, score=score)
        if kept := int((~settled & ~field.masked).sum()):
            told = f"icgn did not converge on {kept} of {settled.size} windows: their neighbours replace them."
            notes = (*notes, told)
    sigma = np.where((field.replaced | field.masked)[..., None], np.nan, found.sigma.reshape(*shape, 2))
    return replace(field, sigma=sigma, notes=notes)


def _filled(field: DisplacementField) -> Floats:
    """The displacement with something everywhere."""
    known = np.isfinite(field.displacement).all(axis=2)
    filled = field.displacement.copy()
    if not known.all():
        places, values = _places(field), field.displacement[known]
        filled[~known] = local_linear(places[known], values, np.ones(len(values)), places[~known], _spacing(field))
    return filled


def _at_pixels(field: DisplacementField, grid: Grid, shape: tuple[int, int]) -> Floats:
    """The displacement (2, Y, X) that a pass starts from: smooth, and carried on to the edges of the frame."""
    rows, columns = (with_edges(axis) for axis in (grid.rows, grid.columns))
    at = np.stack([axis.ravel() for axis in np.meshgrid(rows, columns, indexing="ij")], axis=1)
    known = np.isfinite(field.displacement).all(axis=2)
    values = field.displacement[known]
    nodes = local_linear(_places(field)[known], values, np.ones(len(values)), at, 0.5 * _spacing(field))
    pixels: Floats = at_every_pixel(nodes.T.reshape(2, rows.size, columns.size), pixel_bases(rows, columns, shape))
    return pixels


def _at_points(pixels: Floats, grid: Grid) -> Floats:
    """A displacement (2, Y, X) in the middles of windows, which lie between pixels where windows are even."""
    parts = [np.floor(axis.middles).astype(np.intp) for axis in (grid.rows, grid.columns)]
    uppers = [np.ceil(axis.middles).astype(np.intp) for axis in (grid.rows, grid.columns)]
    corners = [pixels[:, rows][:, :, columns] for rows in (parts[0], uppers[0]) for columns in (parts[1], uppers[1])]
    return np.moveaxis(np.mean(corners, axis=0), 0, 2)


def _firsts(grid: Grid) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    rows, columns = np.meshgrid(grid.rows.firsts, grid.columns.firsts, indexing="ij")
    return rows.ravel(), columns.ravel()


def _places(field: DisplacementField) -> Floats:
    return np.stack(np.meshgrid(field.rows, field.columns, indexing="ij"), axis=2)


def _spacing(field: DisplacementField) -> float:
    """Pixels between neighbours, the larger of both axes."""
    steps = [float(np.diff(axis).mean()) for axis in (field.rows, field.columns) if axis.size > 1]
    return max(steps, default=1.0)


def _share(seen: Array, grid: Grid) -> Floats:
    """Share (gy, gx) of each window that is not masked."""
    table = np.pad(np.cumsum(np.cumsum(to_host(seen).astype(np.int64), axis=0), axis=1), ((1, 0), (1, 0)))
    window = grid.rows.window
    y, x = grid.rows.firsts[:, None], grid.columns.firsts[None, :]
    total = table[y + window, x + window] - table[y, x + window] - table[y + window, x] + table[y, x]
    return np.asarray(total / window**2, np.float64)
