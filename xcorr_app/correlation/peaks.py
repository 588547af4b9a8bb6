"""Integer peaks of correlation planes, and the strongest rival of each; on a device one kernel finds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.peaks.rated_peak import rate_peaks
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array

# A rival is a local maximum at least this many pixels away, so the flank of the peak itself does not count.
_RIVAL_DISTANCE = 3

_TIE = 1e-6
"""Share of a plane's largest magnitude by which elements of one height may differ."""


@dataclass(frozen=True)
class Peaks:
    """Where each plane has its maximum, on the host; every array has one entry a plane."""

    row: NDArray[np.intp]
    column: NDArray[np.intp]
    """Indices into the plane."""
    value: NDArray[Any]
    """Height of the peak; NaN where the plane has no valid element."""
    rival: NDArray[Any]
    """Height of the highest local maximum elsewhere; -inf where there is none."""

    def ratio(self) -> NDArray[Any]:
        """First peak over second; infinite where no positive rival exists, NaN where there is no peak."""
        positive = self.rival > 0
        ratio = np.where(positive, self.value / np.where(positive, self.rival, 1.0), np.inf)
        return np.where(np.isnan(self.value), np.nan, ratio)


def find_peaks(planes: Array, search: tuple[slice, slice], zero: tuple[int, int] | None = None) -> Peaks:
    """Locate the maximum of each plane and its strongest rival.

    Parameters
    ----------
    planes : ndarray, shape (B, ny, nx)
        Of floating point; NaN marks shifts that are not valid, which are never the peak.
    search : tuple of slice
        The part of the plane in which a peak may lie. A rival must lie inside its rim: of a value on the rim it is
        not known whether the correlation rises on beyond.
    zero : (int, int), optional
        Row and column of shift zero, which may lie outside of the plane: of the highest elements, equal up to rounding,
        the one nearest to it is the peak, as a lattice has many. Without it, the first.

    Returns
    -------
    Peaks
    """
    if planes.dtype == np.float16:
        planes = planes.astype(np.float32)
    if is_device_array(planes) and len(planes):
        ends = (part.indices(size)[:2] for part, size in zip(search, planes.shape[1:], strict=True))
        rows, columns = (slice(*each) for each in ends)
        rated = rate_peaks(planes, planes, (rows, columns), (1, 1), None, zero, fisher=False, rate=False)
        return Peaks(rated.row, rated.column, rated.value, rated.rival)
    kind = np.dtype(f"intp, intp, {planes.dtype.str}, {planes.dtype.str}")
    found = np.array([_peak_on_host(plane, search) for plane in planes], kind)
    peaks = Peaks(*(found[name] for name in kind.names or ()))
    tied = None if zero is None or not len(planes) else _nearest_of_equals(planes, search, zero, peaks)
    return peaks if tied is None else prefer(peaks, planes, tied)


def _peak_on_host(plane: NDArray[np.floating], search: tuple[slice, slice]) -> tuple[int, int, float, float]:
    """Row, column and height of the maximum of a plane (ny, nx), and of its strongest rival.

    One plane after the other, which stays in the cache.
    """
    # The maximum of what holds a NaN is one.
    filled = np.where(np.isnan(plane), -np.inf, plane) if np.isnan(plane.max()) else plane
    (top, bottom, _), (left, right, _) = (part.indices(size) for part, size in zip(search, plane.shape, strict=True))
    inside = filled[top:bottom, left:right]
    row, column = divmod(int(inside.argmax()), right - left)
    value = inside[row, column]
    if np.isneginf(value):  # nothing is known of this plane
        return 0, 0, np.nan, -np.inf
    highest = cv2.dilate(filled, np.ones((3, 3), np.uint8))[top:bottom, left:right]
    y, x = np.divmod(np.flatnonzero(inside >= highest), right - left)
    far = (abs(y - row) >= _RIVAL_DISTANCE) | (abs(x - column) >= _RIVAL_DISTANCE)
    for at, size in ((y, bottom - top), (x, right - left)):
        if size > 1:
            far &= (at > 0) & (at < size - 1)
    rival = inside[y[far], x[far]].max(initial=-np.inf)
    return row + top, column + left, value, rival


def prefer(peaks: Peaks, planes: NDArray[np.floating], elements: NDArray[np.integer]) -> Peaks:
    """Move peaks of planes (B, ny, nx) to the elements (B, 2) given where the plane is as high there, up to rounding.

    NaN marks shifts that are not valid; none of them becomes a peak.
    """
    row, column = elements.T
    there = planes[np.arange(planes.shape[0]), row, column]
    largest = np.where(np.isnan(planes), 0.0, abs(planes)).max(axis=(1, 2))
    tied = peaks.value - there <= _TIE * largest
    row, column = np.where(tied, row, peaks.row), np.where(tied, column, peaks.column)
    return replace(peaks, row=row, column=column, value=np.where(tied, there, peaks.value))


def _nearest_of_equals(
    planes: NDArray[np.floating], search: tuple[slice, slice], zero: tuple[int, int], peaks: Peaks
) -> NDArray[np.intp] | None:
    """Row and column (B, 2) of the element nearest to `zero` of those as high as the peak; None where it is alone."""
    inside = planes[:, *search]
    # NaN compares as lower.
    equal = inside >= (peaks.value - _TIE * abs(peaks.value))[:, None, None]
    if int(equal.sum()) <= planes.shape[0]:
        return None
    first = [part.indices(size)[0] for part, size in zip(search, planes.shape[1:], strict=True)]
    rows, columns = (np.arange(n) + start for n, start in zip(inside.shape[1:], first, strict=True))
    distance = (rows - zero[0])[:, None] ** 2 + (columns - zero[1])[None, :] ** 2
    nearest = np.where(equal, distance, np.inf).reshape(planes.shape[0], -1).argmin(axis=1)
    row, column = nearest // inside.shape[2] + first[0], nearest % inside.shape[2] + first[1]
    return np.asarray(np.stack([row, column], axis=1), dtype=np.intp)


def neighbourhoods(planes: Array, row: Array, column: Array, radius: int) -> Array:
    """Cut a square around one element of each plane, NaN where it reaches outside.

    Returns
    -------
    ndarray, shape (B, 2 * radius + 1, 2 * radius + 1)
    """
    return neighbourhoods_of([planes], row, column, radius)[0]


def neighbourhoods_of(kinds: Sequence[Array], row: Array, column: Array, radius: int) -> Array:
    """Cut the same squares of several kinds of planes (B or 1, ny, nx), all at once: (kinds, B, 2 r + 1, 2 r + 1)."""
    xp = array_namespace(kinds[0])
    steps = xp.arange(-radius, radius + 1)
    (rows, inside_rows), (columns, inside_columns) = (
        _within(at[:, None] + steps, size) for at, size in zip((row, column), kinds[0].shape[-2:], strict=True)
    )
    inside = inside_rows[:, :, None] & inside_columns[:, None, :]
    batch = xp.arange(row.shape[0])[:, None, None]
    cut = xp.empty((len(kinds), *inside.shape), kinds[0].dtype)
    for squares, planes in zip(cut, kinds, strict=True):
        squares[:] = planes[batch if planes.shape[0] > 1 else 0, rows[:, :, None], columns[:, None, :]]
    return xp.where(inside, cut, np.nan)


def _within(places: Array, size: int) -> tuple[Array, Array]:
    """The nearest places that there are of so many, and whether these are the same."""
    xp = array_namespace(places)
    nearest = xp.minimum(xp.maximum(places, 0), size - 1)
    return nearest, nearest == places
