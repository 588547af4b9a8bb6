"""Integer peaks of correlation planes, and the strongest rival of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host

# A rival is a local maximum at least this many pixels away, so the flank of the peak itself does not count.
_RIVAL_DISTANCE = 3

_DILATED = (np.float32, np.float64)
"""Types of planes that OpenCV dilates."""
_TIE = 1e-6
"""Share of a plane's largest magnitude by which elements of one height may differ."""


@dataclass(frozen=True)
class Peaks:
    """Where each plane has its maximum; every array has one entry a plane."""

    row: Array
    column: Array
    """Indices into the plane."""
    value: Array
    """Height of the peak; NaN where the plane has no valid element."""
    rival: Array
    """Height of the highest local maximum elsewhere; -inf where there is none."""

    def ratio(self) -> Array:
        """First peak over second; infinite where no positive rival exists, NaN where there is no peak."""
        xp = array_namespace(self.value)
        positive = self.rival > 0
        ratio = xp.where(positive, self.value / xp.where(positive, self.rival, 1.0), np.inf)
        return xp.where(xp.isnan(self.value), np.nan, ratio)


def find_peaks(planes: Array, search: tuple[slice, slice]) -> Peaks:
    """Locate the maximum of each plane and its strongest rival.

    Parameters
    ----------
    planes : ndarray, shape (B, ny, nx)
        NaN marks shifts that are not valid; they are never the peak.
    search : tuple of slice
        The part of the plane in which a peak may lie. A rival must lie inside its rim: of a value on the rim it is
        not known whether the correlation rises on beyond.

    Returns
    -------
    Peaks
    """
    xp = array_namespace(planes)
    if xp is np and planes.dtype in _DILATED and planes[:, *search].size > 0:
        found = [_peak_on_host(plane, search) for plane in planes]
        return Peaks(*(np.array(each) for each in zip(*found, strict=True)))
    filled = xp.where(xp.isnan(planes), -np.inf, planes)
    inside = xp.full_like(filled, -np.inf)
    inside[:, *search] = filled[:, *search]
    flat = inside.reshape(planes.shape[0], -1)
    best = flat.argmax(axis=1)
    value = xp.take_along_axis(flat, best[:, None], axis=1)[:, 0]
    row, column = best // planes.shape[2], best % planes.shape[2]

    is_maximum = inside >= _highest_of_3x3(filled)
    within = xp.zeros(planes.shape[1:], dtype=bool)
    within[*search] = True
    for axis in (0, 1):
        _clear_rim(within, search[axis].indices(planes.shape[1 + axis]), axis)
    rows, columns = xp.arange(planes.shape[1]), xp.arange(planes.shape[2])
    far = (abs(rows[None, :, None] - row[:, None, None]) >= _RIVAL_DISTANCE) | (
        abs(columns[None, None, :] - column[:, None, None]) >= _RIVAL_DISTANCE
    )
    rival = xp.where(is_maximum & far & within, inside, -np.inf).max(axis=(1, 2))
    return Peaks(row, column, xp.where(xp.isneginf(value), np.nan, value), rival)


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


def prefer(peaks: Peaks, planes: Array, elements: NDArray[np.integer]) -> Peaks:
    """Move peaks to the elements given where the plane is as high there, up to rounding.

    Parameters
    ----------
    peaks : Peaks
        Of the planes.
    planes : ndarray, shape (B, ny, nx)
        NaN marks shifts that are not valid; none of them becomes a peak.
    elements : ndarray of int, shape (B, 2)
        Row and column in each plane.

    Returns
    -------
    Peaks
        With the value at the element; the rival stays that of the first peak.
    """
    xp = array_namespace(planes)
    row, column = (xp.asarray(index) for index in elements.T)
    there = planes[xp.arange(planes.shape[0]), row, column]
    largest = xp.where(xp.isnan(planes), 0.0, abs(planes)).max(axis=(1, 2))
    tied = peaks.value - there <= _TIE * largest
    row, column = xp.where(tied, row, peaks.row), xp.where(tied, column, peaks.column)
    return replace(peaks, row=row, column=column, value=xp.where(tied, there, peaks.value))


def nearest_of_equals(
    planes: Array, search: tuple[slice, slice], zero: tuple[int, int], peaks: Peaks
) -> NDArray[np.intp] | None:
    """Of the highest elements of each plane, equal up to rounding, the one nearest to shift zero: a lattice has many.

    Parameters
    ----------
    planes : ndarray, shape (B, ny, nx)
        NaN marks shifts that are not valid.
    search : tuple of slice
        The part of the plane in which a peak may lie.
    zero : (int, int)
        Row and column of shift zero, which may lie outside of the plane.
    peaks : Peaks
        What :func:`find_peaks` found there.

    Returns
    -------
    ndarray of int, shape (B, 2), or None
        Row and column in each plane, on the host, for `prefer`. None where no plane has equal elements.
    """
    xp = array_namespace(planes)
    inside = planes[:, *search]
    # NaN compares as lower.
    equal = inside >= (peaks.value - _TIE * abs(peaks.value))[:, None, None]
    if int(equal.sum()) <= planes.shape[0]:
        return None
    first = [part.indices(size)[0] for part, size in zip(search, planes.shape[1:], strict=True)]
    rows, columns = (xp.arange(n) + start for n, start in zip(inside.shape[1:], first, strict=True))
    distance = (rows - zero[0])[:, None] ** 2 + (columns - zero[1])[None, :] ** 2
    nearest = to_host(xp.where(equal, distance, np.inf).reshape(planes.shape[0], -1).argmin(axis=1))
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


def _clear_rim(within: Array, extent: tuple[int, int, int], axis: int) -> None:
    """Take out the first and the last element along an axis that has more than one."""
    first, stop, _ = extent
    if stop - first > 1:
        rim = [slice(None)] * 2
        for at in (first, stop - 1):
            rim[axis] = slice(at, at + 1)
            within[tuple(rim)] = False


def _highest_of_3x3(planes: Array) -> Array:
    xp = array_namespace(planes)
    for axis in (1, 2):
        before, after = planes.copy(), planes.copy()
        head = [slice(None)] * 3
        tail = [slice(None)] * 3
        head[axis], tail[axis] = slice(None, -1), slice(1, None)
        before[tuple(tail)] = planes[tuple(head)]
        after[tuple(head)] = planes[tuple(tail)]
        planes = xp.maximum(xp.maximum(before, after), planes)
    return planes
