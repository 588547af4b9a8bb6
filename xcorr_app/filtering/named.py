"""Named filters, public as ``xcorr_app.filters``: each makes a `Filter` that ``convolve`` takes.

A filter is an impulse response: ``convolve(image, filters.sobel("y"))`` equals ``scipy.ndimage.sobel(image, 0)``.
Every one is a sum of at most two separable terms. Sigmas and sizes are in pixels and may differ by axis: a
number, or a pair for (rows, columns).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from xcorr_app.arguments import as_number, is_number
from xcorr_app.errors import ArgumentError
from xcorr_app.filtering.taps import Filter, Matrix, Term

__all__ = ["Filter", "box", "dog", "gaussian", "laplacian", "log", "sobel", "unsharp"]

Sigma: TypeAlias = float | Sequence[float]
Axis: TypeAlias = Literal["y", "x"]

SIGMA_LIMITS = (0.1, 250.0)
"""Smallest and largest sigma, in pixels."""
TRUNCATE = 4.0
"""A Gaussian ends this many sigmas from its centre, as in ``scipy.ndimage``."""


def gaussian(sigma: Sigma) -> Filter:
    """Gaussian smoothing, equal to ``scipy.ndimage.gaussian_filter``.

    Parameters
    ----------
    sigma : float or pair of float
        Standard deviation in pixels, from 0.1 to 250; a pair is for rows and columns.

    Returns
    -------
    Filter
        Of rank 1 and sum 1, ``2 * int(4 * sigma + 0.5) + 1`` taps along each axis.

    Raises
    ------
    ArgumentError
        ``sigma`` is out of range.

    Examples
    --------
    >>> gaussian(0.5).taps.round(3)
    array([[0.   , 0.   , 0.   , 0.   , 0.   ],
           [0.   , 0.011, 0.084, 0.011, 0.   ],
           [0.   , 0.084, 0.619, 0.084, 0.   ],
           [0.   , 0.011, 0.084, 0.011, 0.   ],
           [0.   , 0.   , 0.   , 0.   , 0.   ]])
    """
    rows, columns = _sigmas(sigma)
    return Filter(f"gaussian({_shown(rows, columns)})", (_gaussian_term(rows, columns),), (rows, columns))


def box(size: int | Sequence[int]) -> Filter:
    """Mean over a rectangle, equal to ``scipy.ndimage.uniform_filter`` for odd sizes.

    Parameters
    ----------
    size : int or pair of int
        Pixels along each axis, at least 1; a pair is for rows and columns. An even size reaches one pixel further
        down and right than up and left, as every even filter of ``scipy.ndimage.convolve`` does.

    Returns
    -------
    Filter
        Of rank 1 and sum 1.

    Raises
    ------
    ArgumentError
        ``size`` is not a whole number of at least 1, or a pair of them.

    Examples
    --------
    >>> box((1, 4)).taps
    array([[0.25, 0.25, 0.25, 0.25]])
    """
    pair = tuple(size) if isinstance(size, Sequence) else (size, size)
    if len(pair) != 2 or any(isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1 for n in pair):
        raise ArgumentError(f"the size of a box must be one or two whole numbers of at least 1, not {size!r}")
    rows, columns = pair
    return Filter(f"box({_shown(rows, columns)})", ((np.full(rows, 1.0 / rows), np.full(columns, 1.0 / columns)),))


def sobel(axis: Axis | int) -> Filter:
    """Sobel's derivative along one axis, equal to ``scipy.ndimage.sobel``: 8 for a slope of one a pixel.

    Parameters
    ----------
    axis : {"y", "x", 0, 1}
        Along which to differentiate: ``"y"`` or 0 down the rows, ``"x"`` or 1 along the columns.

    Returns
    -------
    Filter
        Of rank 1, 3 x 3.

    Raises
    ------
    ArgumentError
        The axis is of another name.

    Examples
    --------
    >>> sobel("x").taps
    array([[ 1.,  0., -1.],
           [ 2.,  0., -2.],
           [ 1.,  0., -1.]])
    """
    slope, smooth = np.array([1.0, 0.0, -1.0]), np.array([1.0, 2.0, 1.0])
    if axis in ("y", 0):
        return Filter("sobel(y)", ((slope, smooth),))
    if axis in ("x", 1):
        return Filter("sobel(x)", ((smooth, slope),))
    raise ArgumentError(f'the axis of a Sobel filter must be "y" or "x", not {axis!r}')


def laplacian() -> Filter:
    """Sum of the second differences along both axes, equal to ``scipy.ndimage.laplace``.

    Returns
    -------
    Filter
        Of rank 2, 3 x 3.

    Examples
    --------
    >>> laplacian().taps
    array([[ 0.,  1.,  0.],
           [ 1., -4.,  1.],
           [ 0.,  1.,  0.]])
    """
    bend, here = np.array([1.0, -2.0, 1.0]), np.array([0.0, 1.0, 0.0])
    return Filter("laplacian()", ((bend, here), (here, bend)))


def log(sigma: Sigma) -> Filter:
    """Laplacian of a Gaussian, equal to ``scipy.ndimage.gaussian_laplace``: negative on bright blobs.

    Marr and Hildreth 1980, doi:10.1098/rspb.1980.0020.

    Parameters
    ----------
    sigma : float or pair of float
        Standard deviation in pixels, from 0.1 to 250.

    Returns
    -------
    Filter
        Of rank 2, as large as the Gaussian.

    Raises
    ------
    ArgumentError
        ``sigma`` is out of range.

    Examples
    --------
    >>> log(2.0).shape
    (17, 17)
    """
    rows, columns = _sigmas(sigma)
    column, row = _gaussian_term(rows, columns)
    return Filter(f"log({_shown(rows, columns)})", ((_bend(column, rows), row), (column, _bend(row, columns))))


def dog(first: Sigma, second: Sigma) -> Filter:
    """Difference of two Gaussians, ``gaussian(first) - gaussian(second)``: a band-pass for ``first < second``.

    Parameters
    ----------
    first, second : float or pair of float
        Standard deviations in pixels, from 0.1 to 250.

    Returns
    -------
    Filter
        Of rank 2 and sum 0, as large as the larger Gaussian.

    Raises
    ------
    ArgumentError
        A sigma is out of range.

    Examples
    --------
    >>> dog(1, 3).name
    'dog(1.0, 3.0)'
    """
    near, far = _sigmas(first), _sigmas(second)
    column, row = _centred(_gaussian_term(*near), _gaussian_term(*far))
    wide_column, wide_row = _centred(_gaussian_term(*far), _gaussian_term(*near))
    return Filter(f"dog({_shown(*near)}, {_shown(*far)})", ((column, row), (-wide_column, wide_row)))


def unsharp(sigma: Sigma, amount: float) -> Filter:
    """Sharpening by unsharp masking: ``image + amount * (image - gaussian(sigma) of image)``.

    Parameters
    ----------
    sigma : float or pair of float
        Standard deviation of the blur in pixels, from 0.1 to 250.
    amount : float
        How much of the detail is added; 0 changes nothing.

    Returns
    -------
    Filter
        Of rank 2 and sum 1, as large as the Gaussian.

    Raises
    ------
    ArgumentError
        ``sigma`` is out of range or ``amount`` is not finite.

    Examples
    --------
    >>> round(float(unsharp(2, 0.7).taps.sum()), 9)
    1.0
    """
    if not math.isfinite(as_number(amount, "amount")):
        raise ArgumentError(f"the amount of sharpening must be finite, not {amount}")
    rows, columns = _sigmas(sigma)
    column, row = blur = _gaussian_term(rows, columns)
    here, there = _centred((np.ones(1), np.ones(1)), blur)
    terms = ((here * (1 + amount), there), (column * -amount, row))
    return Filter(f"unsharp({_shown(rows, columns)}, {float(amount)})", terms)


def _sigmas(sigma: Sigma) -> tuple[float, float]:
    pair = tuple(sigma) if isinstance(sigma, Sequence) else (sigma, sigma)
    low, high = SIGMA_LIMITS
    if len(pair) != 2 or not all(is_number(value) and low <= value <= high for value in pair):
        raise ArgumentError(f"sigma must be one or two numbers from {low} to {high} pixels, not {sigma!r}")
    return float(pair[0]), float(pair[1])


def _offsets(taps: Matrix) -> Matrix:
    radius = len(taps) // 2
    return np.arange(-radius, radius + 1, dtype=np.float64)


def _gaussian_term(rows: float, columns: float) -> Term:
    def bell(sigma: float) -> Matrix:
        radius = int(TRUNCATE * sigma + 0.5)
        values = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
        return np.asarray(values / values.sum())

    return bell(rows), bell(columns)


def _bend(bell: Matrix, sigma: float) -> Matrix:
    return np.asarray((_offsets(bell) ** 2 / sigma**4 - 1 / sigma**2) * bell)


def _centred(term: Term, other: Term) -> Term:
    """Lengthen a term of odd sizes with zeros on both sides to at least the sizes of another."""
    column, row = (np.pad(taps, max(0, len(longer) - len(taps)) // 2) for taps, longer in zip(term, other, strict=True))
    return column, row


def _shown(rows: float, columns: float) -> str:
    return f"{rows}" if rows == columns else f"({rows}, {columns})"
