"""Sub-pixel position of a peak from the correlation values around it.

``gaussian``
    Least-squares fit of a full second-order polynomial to the logarithm of the 3 x 3 values: exact for a peak of
    Gaussian shape of any width and direction, which correlation peaks of smooth images come close to. Values near
    zero have no useful logarithm; the fit is then that of ``quadratic``.
``quadratic``
    The same fit to the values themselves.
``parabolic``
    A parabola through three values along each axis by itself.
``dft``
    Band-limited interpolation of the plane, evaluated by matrix products on a fine grid around the peak (after the
    matrix-multiply DFT of Guizar-Sicairos, Thurman and Fienup 2008, doi 10.1364/OL.33.000156). A normalised plane is
    not periodic, so the interpolating kernel is a sinc under a Kaiser window over 25 x 25 values. It weighs
    values far from the peak, into which the edges of the images enter: on small or low-contrast peaks a fit is better.
``none``
    The integer position.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace

Method = Literal["gaussian", "dft", "quadratic", "parabolic", "none"]
METHODS: tuple[str, ...] = get_args(Method)

_DFT_RADIUS = 12
_KAISER_BETA = 8.0
MIN_LOGARITHM = 0.02
"""Share of the peak below which a value's logarithm is mostly noise."""
_COARSE_STEPS = 10
FLAT = 1e-12
"""Curvature, as a share of the values, that is rounding."""


def _polynomial_of_nine() -> NDArray[np.float64]:
    """Matrix (9, 6) from 3 x 3 values to the coefficients of 1, y, x, y^2, x y, x^2, by least squares."""
    y, x = (axis.ravel().astype(np.float64) for axis in np.mgrid[-1:2, -1:2])
    inverse: NDArray[np.float64] = np.linalg.pinv(np.stack([np.ones(9), y, x, y * y, x * y, x * x], axis=1))
    return inverse.T


_POLYNOMIAL_OF_NINE = _polynomial_of_nine()


def radius_of(method: str) -> int:
    """How many values on each side of the peak the method looks at."""
    return {"gaussian": 1, "dft": _DFT_RADIUS, "quadratic": 1, "parabolic": 1, "none": 0}[method]


def refine(values: Array, method: str, upsample: int) -> tuple[Array, Array]:
    """Refine the position of a peak from the values around it.

    Parameters
    ----------
    values : ndarray, shape (B, 2 r + 1, 2 r + 1)
        Correlation around integer peaks, r = ``radius_of(method)``; NaN where there is no value. Where a method
        lacks values, the parabola takes its place; along an axis without both neighbours the position stays.
    method : str
        One of `METHODS`.
    upsample : int
        Grid points per pixel of ``dft``.

    Returns
    -------
    offset : ndarray, shape (B, 2)
        Rows, columns in pixels, to be added to the integer position; each within [-1, 1].
    height : ndarray, shape (B,)
        Value at the refined position: interpolated for ``dft``, else by the parabolas through the peak itself.
    """
    xp = array_namespace(values)
    radius = values.shape[1] // 2
    centre = values[:, radius, radius]
    if method == "none":
        return xp.zeros((values.shape[0], 2)), centre
    near = values[:, radius - 1 : radius + 2, radius - 1 : radius + 2]
    # Along an axis whose two neighbours exist a parabola always works; along another the position stays.
    offset, height = _parabolic(near)
    usable = xp.isfinite(near).all(axis=(1, 2))
    if method in ("gaussian", "quadratic"):
        fit = _gaussian if method == "gaussian" else _quadratic
        offset = xp.where(usable[:, None], fit(xp.where(usable[:, None, None], near, 0.0)), offset)
    elif method == "dft":
        whole = xp.isfinite(values).all(axis=(1, 2))
        fine_offset, fine_height = _dft(xp.where(whole[:, None, None], values, 0.0), upsample)
        offset = xp.where(whole[:, None], fine_offset, offset)
        height = xp.where(whole, fine_height, height)
    return offset, height


def _vertex(before: Array, middle: Array, after: Array) -> tuple[Array, Array]:
    """Vertex of the parabola through values at -1, 0, 1: position (0 where it has no maximum) and rise."""
    xp = array_namespace(middle)
    curvature = before - 2 * middle + after
    concave = curvature < -FLAT * abs(middle)  # false where a neighbour is missing
    slope = xp.where(concave, (after - before) / 2, 0.0)
    position = xp.where(concave, -slope / xp.where(concave, curvature, 1.0), 0.0)
    position = xp.minimum(xp.maximum(position, -1.0), 1.0)
    return position, xp.where(concave, position * slope + position * position * curvature / 2, 0.0)


def _parabolic(near: Array) -> tuple[Array, Array]:
    """Vertices of the parabolas along both axes, and their top; unlike that of a fit it is never below the peak."""
    xp = array_namespace(near)
    dy, rise_y = _vertex(near[:, 0, 1], near[:, 1, 1], near[:, 2, 1])
    dx, rise_x = _vertex(near[:, 1, 0], near[:, 1, 1], near[:, 1, 2])
    return xp.stack([dy, dx], axis=1), near[:, 1, 1] + rise_y + rise_x


def _gaussian(near: Array) -> Array:
    """Maximum of the Gaussian fitted to the nine values; of the polynomial where one of them is too small."""
    xp = array_namespace(near)
    positive = (near > MIN_LOGARITHM * near[:, 1:2, 1:2]).all(axis=(1, 2))[:, None]
    return _quadratic(xp.where(positive[:, :, None], xp.log(xp.where(positive[:, :, None], near, 1.0)), near))


def quadratic_terms(near: Array) -> Array:
    """Coefficients (B, 6) of 1, y, x, y^2, x y, x^2 fitted to values (B, 3, 3) by least squares."""
    if isinstance(near, np.ndarray):
        # One by one: how BLAS adds the products of several rows depends on how many there are.
        return (near.reshape(-1, 1, 9) @ _POLYNOMIAL_OF_NINE)[:, 0]
    return near.reshape(-1, 9) @ array_namespace(near).asarray(_POLYNOMIAL_OF_NINE)


def _quadratic(near: Array) -> Array:
    """Maximum of ``a + b y + c x + d y^2 + e x y + f x^2`` fitted to the nine values."""
    xp = array_namespace(near)
    fit = quadratic_terms(near)
    b, c, d, e, f = (fit[:, i] for i in range(1, 6))
    determinant = 4 * d * f - e * e
    flat = FLAT * abs(near).max(axis=(1, 2))
    concave = (determinant > flat * flat) & (d < -flat)
    safe = xp.where(concave, determinant, 1.0)
    dy = xp.where(concave, (e * c - 2 * f * b) / safe, 0.0)
    dx = xp.where(concave, (e * b - 2 * d * c) / safe, 0.0)
    return xp.minimum(xp.maximum(xp.stack([dy, dx], axis=1), -1.0), 1.0)


def _dft(values: Array, upsample: int) -> tuple[Array, Array]:
    """Two grids, the second around the best point of the first, then a parabola."""
    xp = array_namespace(values)
    batch = xp.arange(values.shape[0])
    position = xp.zeros((values.shape[0], 2))
    reach = 1.0
    steps = sorted({min(_COARSE_STEPS, upsample), upsample})
    for density in steps:
        count = int(np.ceil(reach * density))
        grid = xp.arange(-count, count + 1) / density
        rows = _kernel(position[:, :1] + grid, xp)
        columns = _kernel(position[:, 1:] + grid, xp)
        surface = rows @ values @ columns.transpose(0, 2, 1)
        # The outermost points only serve as neighbours.
        inner = surface[:, 1:-1, 1:-1]
        best = inner.reshape(values.shape[0], -1).argmax(axis=1)
        i, j = best // inner.shape[2] + 1, best % inner.shape[2] + 1
        position = position + xp.stack([grid[i], grid[j]], axis=1)
        reach = 1.5 / density
    dy, rise_y = _vertex(surface[batch, i - 1, j], surface[batch, i, j], surface[batch, i + 1, j])
    dx, rise_x = _vertex(surface[batch, i, j - 1], surface[batch, i, j], surface[batch, i, j + 1])
    position = xp.clip(position + xp.stack([dy, dx], axis=1) / upsample, -1.0, 1.0)
    height = surface[batch, i, j] + rise_y + rise_x
    centre = values[:, _DFT_RADIUS, _DFT_RADIUS]
    higher = height > centre + FLAT * abs(centre)
    return xp.where(higher[:, None], position, 0.0), xp.where(higher, height, centre)


def _kernel(positions: Array, xp: Any) -> Array:
    """Interpolation weights (..., 2 r + 1) of the values at -r .. r for each position."""
    distance = positions[..., None] - xp.arange(-_DFT_RADIUS, _DFT_RADIUS + 1)
    inside = xp.clip(1.0 - (distance / (_DFT_RADIUS + 1)) ** 2, 0.0, None)
    window = xp.i0(_KAISER_BETA * xp.sqrt(inside))
    weights = xp.sinc(distance) * window
    return weights / weights.sum(axis=-1, keepdims=True)
