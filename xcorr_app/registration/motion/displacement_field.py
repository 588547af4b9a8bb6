"""The displacement of a pattern between two images on a grid, as particle image velocimetry and strain work want it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ArgumentError, DataTypeError, ShapeError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.gpu.runtime.placement import on_device_of
from xcorr_app.registration.motion.displacement import at_every_pixel, places_of
from xcorr_app.registration.motion.grid import Grid, pixel_bases, with_edges
from xcorr_app.registration.motion.ndimage import ndimage_of
from xcorr_app.registration.motion.smooth_field import local_linear, normalised_median
from xcorr_app.registration.motion.window_icgn import RefinedWindows, refine_windows
from xcorr_app.registration.motion.window_match import WindowMatch, Windows, match_windows
from xcorr_app.registration.significance import MAX_FALSE_ALARM

Floats = NDArray[np.float64]
Refine = Literal["none", "icgn"]
REFINEMENTS = ("none", "icgn")
DEFAULT_WINDOW, DEFAULT_STEP, DEFAULT_PASSES, DEFAULT_MEDIAN = 32, 16, 3, 3.0

_SMALLEST = 8
_LEAST_SEEN = 0.5
"""Share of a window that must not be masked."""
_ROUNDS = 2
"""Of the median test: without the vectors that the first found, others may stand out."""


@dataclass(frozen=True, eq=False)
class DisplacementField:
    """Displacement at every point of a grid and what can be said about it. NumPy arrays."""

    rows: Floats
    """(gy,) row of the points, the middles of their windows, in pixels counted from the first."""
    columns: Floats
    """(gx,) column of the points."""
    displacement: Floats
    """(gy, gx, 2) rows, columns in pixels by which the second image shows displaced what the first shows there; NaN
    where masked. Where `replaced`, what its neighbours say."""
    sigma: Floats
    """(gy, gx, 2) standard errors in pixels, for noise that is independent from pixel to pixel; NaN where replaced."""
    score: Floats
    """(gy, gx) zero-mean normalised correlation of the windows as last compared."""
    significance: Floats
    """(gy, gx) height of the peak in standard deviations of its plane; NaN where not known."""
    replaced: NDArray[np.bool_]
    """(gy, gx) whether the measured vector was not trusted and its neighbours took its place."""
    masked: NDArray[np.bool_]
    """(gy, gx) whether there was too little to see."""
    notes: tuple[str, ...] = ()

    @property
    def slopes(self) -> Floats:
        """(gy, gx, 2, 2) of the displacement's component (first index: rows, columns) along rows and columns."""
        return _slopes(self.displacement, self.rows, self.columns)

    @property
    def strain(self) -> Floats:
        """(gy, gx, 3) small strains: along rows, along columns, shear (half the sum of the mixed slopes)."""
        slopes = self.slopes
        shear = (slopes[..., 0, 1] + slopes[..., 1, 0]) / 2
        return np.stack([slopes[..., 0, 0], slopes[..., 1, 1], shear], axis=-1)

    @property
    def vorticity(self) -> Floats:
        """(gy, gx) twice the rate of turning, from columns towards rows: clockwise as displayed is positive."""
        slopes = self.slopes
        turning: Floats = slopes[..., 0, 1] - slopes[..., 1, 0]
        return turning

    def save(self, path: Path | str) -> None:
        """Write the field to a file, which is replaced if it exists.

        By the ending of its name: ``.csv``, ``.vtk`` (legacy text), ``.nc`` (NetCDF 3), ``.npz`` or ``.ome.tif``
        (OME-TIFF of the channels dy, dx, sigma_y, sigma_x and replaced, whose pixel is the step of the grid).

        Raises
        ------
        ArgumentError
            The name ends in none of them.
        OutputError
            The file cannot be written.
        """
        from xcorr_app.registration.motion.field_files import save

        save(self, Path(path))


def displacement_field(
    first: Array,
    second: Array,
    window: int = DEFAULT_WINDOW,
    step: int = DEFAULT_STEP,
    passes: int = DEFAULT_PASSES,
    *,
    max_displacement: float | None = None,
    median_threshold: float = DEFAULT_MEDIAN,
    mask: Array | None = None,
    refine: Refine = "none",
) -> DisplacementField:
    """Measure how the second image shows the pattern of the first displaced, on a grid.

    The first pass compares windows of twice the size; in each that follows, the second image is looked at through the
    displacement found so far, so that windows may be strained. After each pass, vectors whose peak chance may have
    made, that lie on the edge of the search, or that fail the normalised median test are replaced by the
    Gaussian-weighted local-linear regression of the others.

    Parameters
    ----------
    first, second : ndarray, shape (Y, X)
        NumPy or CuPy, finite where not masked.
    window : int
        Rows and columns of a window, 8 or more.
    step : int
        Pixels, at most, from one window to the next; they are spread evenly from edge to edge.
    passes : int
        1 or more. A single pass compares windows of the size asked for.
    max_displacement : float, optional
        Largest displacement in pixels along each axis that the first pass searches. Default: half a window.
    median_threshold : float
        Residual of the normalised median test above which a vector is replaced.
    mask : ndarray, shape (Y, X), optional
        Nonzero where pixels of the first image count. Points whose windows have less than half of them are NaN.
    refine : {'none', 'icgn'}
        Last step: inverse-compositional Gauss-Newton with first-order shape functions per window.

    Returns
    -------
    DisplacementField
        ``displacement`` (gy, gx, 2) in pixels, rows down and columns right, at ``rows`` and ``columns``.

    Raises
    ------
    ArgumentError, ShapeError, DataTypeError
        For options out of range, images that differ in shape, are smaller than a window, flat or not finite.

    References
    ----------
    Westerweel and Scarano 2005, doi 10.1007/s00348-005-0016-6 (median test); Scarano 2002, doi
    10.1088/0957-0233/13/1/201 (window deformation); Pan, Li and Tong 2013, doi 10.1007/s11340-013-9717-6 (``icgn``).

    Examples
    --------
    >>> import numpy as np, xcorr_app as xc
    >>> from scipy.ndimage import gaussian_filter
    >>> scene = gaussian_filter(np.random.default_rng(0).normal(size=(140, 140)), 1.5)
    >>> field = xc.displacement_field(scene[6:134, 6:134], scene[3:131, 8:136])
    >>> np.median(field.displacement, axis=(0, 1)).round(1) + 0.0
    array([ 3., -2.])
    """
    reach = _checked(first, second, window, step, passes, max_displacement, median_threshold, refine)
    with on_device_of(first, second):
        seen = None
        if mask is not None:
            if mask.shape != first.shape:
                raise ShapeError(f"the mask has shape {mask.shape}: the images are {first.shape}")
            seen = array_namespace(first).asarray(mask) != 0
        images = [_prepared(image, seen, name) for image, name in ((first, "first"), (second, "second"))]
        sizes = [window] if passes == 1 else [min(2 * window, *first.shape), *[window] * (passes - 1)]
        found: DisplacementField | None = None
        for number, size in enumerate(sizes):
            grid = Grid.of(first.shape, size, step * size / window)
            within = reach if number == 0 else max(3, window // 4)
            found = _pass(images, grid, within, found, seen, median_threshold)
        assert found is not None  # noqa: S101 - there is at least one pass
        return _with_last_step(images, Grid.of(first.shape, window, step), found, seen, median_threshold, refine)


def _checked(
    first: Array,
    second: Array,
    window: int,
    step: int,
    passes: int,
    max_displacement: float | None,
    median_threshold: float,
    refine: str,
) -> int:
    """Refuse what makes no sense; return the largest whole displacement of the first pass."""
    if array_namespace(first) is not array_namespace(second):
        raise DataTypeError("first and second must both be NumPy or both be CuPy arrays")
    if first.ndim != 2 or first.shape != second.shape:
        raise ShapeError(f"images have shapes {first.shape} and {second.shape}: give two of one shape (Y, X)")
    for name, image in (("first", first), ("second", second)):
        if image.dtype.kind not in "iuf":
            raise DataTypeError(f"{name} has dtype {image.dtype}: convert it to integers or floating point")
    if not isinstance(window, (int, np.integer)) or window < _SMALLEST:
        raise ArgumentError(f"window is {window!r}: give {_SMALLEST} pixels or more")
    if min(first.shape) < window:
        raise ShapeError(f"windows of {window} pixels do not fit into {first.shape[0]} x {first.shape[1]}: give less")
    if not isinstance(step, (int, np.integer)) or step < 1:
        raise ArgumentError(f"step is {step!r}: give one pixel or more")
    if not isinstance(passes, (int, np.integer)) or not 1 <= passes <= 20:
        raise ArgumentError(f"passes is {passes!r}: give 1 to 20")
    if not median_threshold > 0:
        raise ArgumentError(f"median_threshold is {median_threshold!r}: give a positive number")
    if refine not in REFINEMENTS:
        raise ArgumentError(f"unknown refinement {refine!r}: use {' or '.join(REFINEMENTS)}")
    if max_displacement is None:
        return window // 2
    if not 0 < max_displacement <= max(first.shape):
        raise ArgumentError(f"max_displacement is {max_displacement!r}: give pixels, more than none")
    return int(np.ceil(max_displacement))


def _prepared(image: Array, seen: Array | None, name: str) -> Array:
    """An image as float32 without its mean; what is masked is zero."""
    xp = array_namespace(image)
    values = image.astype(np.float64)
    if seen is not None:
        # Beyond the mask there may be anything, in the second image too.
        values = xp.where(xp.isfinite(values) | seen, values, 0.0)
        if not bool(seen.any()):
            raise ArgumentError("the mask leaves nothing to see: it is zero everywhere")
    if not bool(xp.isfinite(values).all()):
        raise ArgumentError(f"the {name} image holds NaN or infinite values: mask them, or replace them")
    mean = float(values.mean() if seen is None else values[seen].mean())
    if not float((values if seen is None else values[seen]).std()) > 1e-12 * max(abs(mean), 1e-300):
        raise ArgumentError(f"the {name} image is flat: there is no pattern to follow")
    values = values - mean
    return (values if seen is None else xp.where(seen, values, 0.0)).astype(np.float32)


def _pass(
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
    return _validated(match, grid, predicted, share < _LEAST_SEEN, threshold)


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


def _with_last_step(
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
    slopes = _slopes(filled, field.rows, field.columns).reshape(-1, 2, 2)
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


def _slopes(values: Floats, rows: Floats, columns: Floats) -> Floats:
    """Slopes (gy, gx, 2, 2) of values (gy, gx, 2) along rows and columns; zero along an axis of one point."""
    found = np.zeros((*values.shape, 2))
    for axis, places in ((0, rows), (1, columns)):
        if places.size > 1:
            found[..., axis] = np.gradient(values, places, axis=axis)
    return found
