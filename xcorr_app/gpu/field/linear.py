"""Linear motions of frames on a device: the sums that steps of Gauss-Newton, scores and standard errors follow from.

Sums are those of six first-order changes of a reference, ``g_y, g_x, y g_y, x g_y, y g_x, x g_x``, of which those of
every model are mixtures.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xcorr_app.gpu.field.launches import LINEAR, SCATTERED, linear_scatter_launch, linear_sums_launch
from xcorr_app.gpu.runtime.arrays import to_host
from xcorr_app.gpu.runtime.binder import start

__all__ = ["LinearSums", "linear_scatter", "linear_sums", "unit_of"]

Floats = npt.NDArray[np.float64]

_CHANGES = 6
_SLOPE, _POWER = np.array([0, 1, 0, 0, 1, 1]), np.array([0, 0, 1, 2, 1, 2])
"""Of each change, its slope, g_y or g_x, and what that is multiplied by: 1, y or x."""
_POWERS = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])
"""Where the product of two of these stands among 1, y, x, y^2, y x, x^2."""
_OF_POWERS = _POWERS[_POWER[:, None], _POWER]


def unit_of(shape: tuple[int, int]) -> float:
    """Pixels of frames of such a shape times this are the coordinates in sums."""
    return 2.0 / max(shape)


@dataclass(frozen=True)
class LinearSums:
    """Of n motions, over the pixels that are compared; r is the reference and v the frame as seen."""

    normal: Floats
    """(n, 8, 8) products of the negative changes, v and 1."""
    right: Floats
    """(n, 8) the same times r."""
    score: Floats
    """(n,) zero-mean normalised correlation of r and v; NaN where one is constant."""
    pixels: Floats
    """(n,)"""


def linear_sums(frames: Any, reference: Any, slopes: Any, numbers: npt.NDArray[np.intp], motions: Floats) -> LinearSums:
    """Sums of `motions` (n, 2, 3) of pixel coordinates, each of the frame of that number.

    `frames` (T, Y, X) are the coefficients of their cubic splines and `slopes` (Y, X, 2) those of the `reference`
    along rows and columns, in float32 on the device.
    """
    cupy = importlib.import_module("cupy")
    shape, items = (int(frames.shape[1]), int(frames.shape[2])), len(numbers)
    launch = linear_sums_launch(shape, items)
    found = cupy.empty((items, launch.blocks // items, LINEAR), np.float32)
    given = (cupy.asarray(numbers.astype(np.int32)), cupy.asarray(np.ascontiguousarray(motions, np.float64)))
    start(launch, (frames, reference, slopes, *given, found), (*shape, *launch.extra))
    return _assembled(to_host(found.sum(axis=1, dtype=np.float64)))


def linear_scatter(
    seen: Any, reference: Any, slopes: Any, motions: Floats, gains: Floats, offsets: Floats
) -> tuple[Floats, Floats]:
    """Products of n frames as `seen` (n, Y, X) with the changes that their own slopes give, (n, 8, 6), and scatter.

    That is of the products with the residuals ``r - gain v - offset``, summed over squares: (n, 8, 8).
    """
    cupy = importlib.import_module("cupy")
    shape, items = (int(seen.shape[1]), int(seen.shape[2])), len(seen)
    launch = linear_scatter_launch(shape, items)
    squares = launch.extra[0] * launch.extra[1]
    found = cupy.empty((items, squares, SCATTERED), np.float32)
    levels = np.stack([gains, offsets], axis=1).astype(np.float32)
    given = cupy.asarray(np.ascontiguousarray(motions, np.float64)), cupy.asarray(levels)
    start(launch, (seen, reference, slopes, *given, found), (*shape, items, *launch.extra))
    residual = found[:, :, : _CHANGES + 2].astype(np.float64)
    scatter: Floats = to_host(residual.transpose(0, 2, 1) @ residual)
    sums = to_host(found[:, :, _CHANGES + 2 :].sum(axis=1, dtype=np.float64))
    pairs = 2 * _SLOPE[:, None] + _SLOPE
    of_changes = -sums[:, 6 * pairs + _OF_POWERS]
    of_levels = sums[:, 24:].reshape(items, 2, _CHANGES)
    return np.concatenate([of_changes, of_levels], axis=1), scatter


def _assembled(sums: Floats) -> LinearSums:
    v, vv, vr, r, rr, pixels = sums[:, 36:].T
    pairs = _SLOPE[:, None] + _SLOPE
    of_v, of_r, of_one = -sums[:, 18:36].reshape(-1, 3, _CHANGES).transpose(1, 0, 2)
    normal = np.empty((len(sums), _CHANGES + 2, _CHANGES + 2))
    normal[:, :6, :6] = sums[:, 6 * pairs + _OF_POWERS]
    normal[:, :6, 6] = normal[:, 6, :6] = of_v
    normal[:, :6, 7] = normal[:, 7, :6] = of_one
    normal[:, 6, 6], normal[:, 7, 7] = vv, pixels
    normal[:, 6, 7] = normal[:, 7, 6] = v
    count = np.maximum(pixels, 1)
    power = (vv - v * v / count) * (rr - r * r / count)
    with np.errstate(invalid="ignore", divide="ignore"):
        score = np.where(power > 0, (vr - v * r / count) / np.sqrt(power), np.nan)
    return LinearSums(normal, np.column_stack([of_r, vr, r]), score, pixels)
