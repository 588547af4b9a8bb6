"""Peaks of finished planes as shifts in pixels.

Works on planes as :func:`xcorr_app.cross_correlate` returns them, whoever computed them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.peaks import find_peaks, neighbourhoods
from xcorr_app.correlation.subpixel import METHODS, radius_of, refine
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host

_UPSAMPLE = 100
"""Grid points per pixel of the sub-pixel method ``dft``."""


class PlanePeaks(NamedTuple):
    """The highest element of every plane. NumPy arrays with one entry a plane."""

    peak: NDArray[np.intp]
    """(n, 2) whole shifts dy, dx in pixels; without meaning where `value` is NaN."""
    shift: NDArray[np.float64]
    """(n, 2) the same between whole pixels; NaN where the plane has no valid element."""
    value: NDArray[np.float64]
    """(n,) the plane at the whole shift; NaN where the plane has no valid element."""
    ratio: NDArray[np.float64]
    """(n,) the peak over the highest local maximum at least 3 shifts away; infinite where none is positive."""
    on_edge: NDArray[np.bool_]
    """(n,) the peak has no valid neighbour on one side: higher values may lie beyond."""


def peaks_of_planes(planes: Array, window: ShiftWindow, subpixel: str = "gaussian") -> PlanePeaks:
    """Locate the peak of every plane; of equal ones, up to rounding, the one nearest to shift zero.

    Parameters
    ----------
    planes : ndarray, shape (..., ny, nx)
        NumPy or CuPy; NaN marks shifts that are not valid.
    window : ShiftWindow
        The shifts that the planes cover, in pixels.
    subpixel : str
        One of :data:`xcorr_app.correlation.subpixel.METHODS`.

    Returns
    -------
    PlanePeaks
        Planes in the order of their memory, the last leading axis fastest.

    Raises
    ------
    ShapeError
        If the planes do not cover the window.
    ArgumentError
        If the method is unknown.

    Examples
    --------
    >>> import numpy as np, xcorr_app as xc
    >>> right = np.random.default_rng(0).normal(size=(48, 64))
    >>> left = np.roll(right, (2, -3), axis=(0, 1))
    >>> window = xc.ShiftWindow.symmetric(5, 5)
    >>> peaks_of_planes(xc.cross_correlate(left, right, max_shift=window), window).peak.tolist()
    [[2, -3]]
    """
    if planes.shape[-2:] != window.shape:
        raise ShapeError(f"planes of shape {planes.shape} do not cover a window of {window.shape} shifts")
    if subpixel not in METHODS:
        raise ArgumentError(f"unknown subpixel method {subpixel!r}: use one of {', '.join(METHODS)}")
    planes, xp = planes.reshape(-1, *window.shape), array_namespace(planes)
    found = find_peaks(planes, (slice(None), slice(None)), (-window.dy_min, -window.dx_min))
    place = xp.asarray(found.row), xp.asarray(found.column)
    offset, _ = refine(neighbourhoods(planes, *place, radius_of(subpixel)).astype(np.float64), subpixel, _UPSAMPLE)
    beside, value = to_host(neighbourhoods(planes, *place, 1)), found.value.astype(np.float64)
    peak = np.stack([found.row + window.dy_min, found.column + window.dx_min], axis=1)
    exists = ~np.isnan(value)
    shift = np.where(exists[:, None], peak + to_host(offset), np.nan)
    return PlanePeaks(peak, shift, value, found.ratio().astype(np.float64), exists & lacks_neighbours(beside, window))


def lacks_neighbours(beside: NDArray[np.floating], window: ShiftWindow) -> NDArray[np.bool_]:
    """Tell whether a peak may be one only because what lies beyond it is not known.

    Parameters
    ----------
    beside : ndarray, shape (n, 3, 3)
        Values around each peak; NaN where a shift is not valid or was not computed.
    window : ShiftWindow
        The shifts that were searched.

    Returns
    -------
    ndarray of bool, shape (n,)
        No value before or after the centre, along an axis of several shifts.
    """
    rows, columns = window.shape
    lacks = np.zeros(beside.shape[0], dtype=bool)
    if rows > 1:
        lacks |= np.isnan(beside[:, 0, 1]) | np.isnan(beside[:, 2, 1])
    if columns > 1:
        lacks |= np.isnan(beside[:, 1, 0]) | np.isnan(beside[:, 1, 2])
    return lacks
