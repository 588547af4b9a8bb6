"""Windows refined by inverse-compositional Gauss-Newton with first-order shape functions: the last step of strain work.

A window of the first image is looked for in the second at places that a displacement and its four slopes take its
pixels to, whatever the gain and offset (zero-normalised sum of squared differences). Slopes of the image and the
Hessian are those of the first image and stay the same (Pan, Li and Tong 2013, doi 10.1007/s11340-013-9717-6). The
second image is interpolated by quintic splines, whose error on fine speckle is a thousandth of a pixel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, to_host
from xcorr_app.registration.field.window_match import windows_of
from xcorr_app.registration.warping.ndimage import ndimage_of
from xcorr_app.registration.warping.warp import inside_frame

Floats = NDArray[np.float64]

_MAX_STEPS = 25
_SETTLED = 2e-4
"""Pixels by which the corner of a window moves in a step after which it is settled."""
_FARTHEST = 1.0
"""Pixels from the start beyond which another place was found."""
_AT_ONCE = 1 << 21
"""Pixels of the windows that are refined together."""
_MIN_SEEN = 0.4
"""Share of a window that must be seen in both images."""
_FLATTEST = 1e-9
"""Smallest eigenvalue of a scaled Hessian, over the largest, that tells all six numbers apart."""


@dataclass(frozen=True)
class RefinedWindows:
    """One entry a window, on the host."""

    shift: Floats
    """(n, 2) displacement of the middle; as it was where no better was found."""
    sigma: Floats
    """(n, 2) standard error in pixels, for residuals that are independent; NaN where the window tells nothing."""
    score: Floats
    """(n,) zero-mean normalised correlation."""
    settled: NDArray[np.bool_]
    """(n,)"""


def refine_windows(
    first: Array,
    second: Array,
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
    size: int,
    shift: Floats,
    slopes: Floats,
    steps: int = _MAX_STEPS,
    counts: Array | None = None,
) -> RefinedWindows:
    """Refine the displacement (n, 2) of windows that begin at (n,) rows and columns of the first image.

    `slopes` (n, 2, 2) are of the displacement's components along rows and columns, to start from.
    Pixels of the first image that do not count (Y, X), or that are looked for beyond the second, take no part.
    """
    xp = array_namespace(first)
    ndimage = ndimage_of(xp)
    taps = xp.asarray(np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12)
    first, second = first.astype(np.float64), second.astype(np.float64)
    images = [first, *(ndimage.correlate1d(first, taps, axis=axis, mode="mirror") for axis in (0, 1))]
    splines = ndimage.spline_filter(second, order=5, output=np.float64, mode="mirror")
    parts = []
    at_once = max(1, _AT_ONCE // size**2)
    for start in range(0, len(rows), at_once):
        part = slice(start, start + at_once)
        cut = [windows_of(image, rows[part], columns[part], (size, size)).reshape(-1, size * size) for image in images]
        weight = None if counts is None else windows_of(counts, rows[part], columns[part], (size, size))
        if weight is not None:
            weight = weight.reshape(-1, size * size).astype(np.float64)
        middle: Floats = np.stack([rows[part], columns[part]], axis=1).astype(np.float64) + (size - 1) / 2
        parts.append(_refined(cut, weight, splines, middle, size, shift[part], slopes[part], steps, xp))
    return RefinedWindows(*(np.concatenate(columns_) for columns_ in zip(*parts, strict=True)))


def _refined(
    cut: list[Array],
    weight: Array | None,
    splines: Array,
    middle: Floats,
    size: int,
    shift: Floats,
    slopes: Floats,
    steps: int,
    xp: Any,
) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    values, gy, gx = cut
    offset = xp.arange(size, dtype=np.float64) - (size - 1) / 2
    y, x = (axis.ravel() for axis in xp.meshgrid(offset, offset, indexing="ij"))
    changes = xp.stack([gy, gy * y, gy * x, gx, gx * y, gx * x], axis=2)
    if weight is not None:
        changes = changes * weight[:, :, None]
    hessian = to_host(changes.transpose(0, 2, 1) @ changes)
    scale = np.sqrt(np.maximum(np.einsum("nii->ni", hessian), 1e-300))
    eigenvalues = np.linalg.eigvalsh(hessian / scale[:, :, None] / scale[:, None, :])
    usable = (eigenvalues[:, 0] > _FLATTEST * eigenvalues[:, -1]) & np.isfinite(shift).all(axis=1)
    inverse = np.linalg.inv(np.where(usable[:, None, None], hessian, np.eye(6)))
    # Homogeneous matrices about the middle of each window.
    motion = np.tile(np.eye(3), (len(shift), 1, 1))
    motion[:, :2, :2] += slopes
    motion[:, :2, 2] = np.where(usable[:, None], shift, 0.0)
    begin = motion[:, :2, 2].copy()
    settled = np.zeros(len(shift), dtype=bool)
    active = usable.copy()
    score, variance = np.full(len(shift), np.nan), np.full(len(shift), np.nan)
    for step in range(steps + 1):
        rows = np.flatnonzero(active) if step < steps else np.flatnonzero(usable)
        if step < steps and not rows.size:
            continue
        at = xp.asarray(rows)
        there = xp.asarray(motion[rows])
        places = xp.stack(
            [
                there[:, axis, 0, None] * y
                + there[:, axis, 1, None] * x
                + there[:, axis, 2, None]
                + xp.asarray(middle[rows, axis])[:, None]
                for axis in (0, 1)
            ]
        )
        seen = ndimage_of(xp).map_coordinates(splines, places, order=5, mode="mirror", prefilter=False)
        inside = inside_frame(places, splines.shape).astype(np.float64)
        if weight is not None:
            inside *= weight[at]
        pixels = xp.maximum(inside.sum(axis=1), 1.0)
        seen, image = ((part - ((part * inside).sum(axis=1) / pixels)[:, None]) * inside for part in (seen, values[at]))
        power, own = ((part * part).sum(axis=1) for part in (image, seen))
        residual = seen * xp.sqrt(power / xp.maximum(own, 1e-300))[:, None] - image
        if step == steps:
            product = (seen * image).sum(axis=1)
            score[rows] = to_host(product / xp.maximum(xp.sqrt(power * own), 1e-300))
            variance[rows] = to_host((residual * residual).sum(axis=1) / xp.maximum(pixels - 8, 1.0))
            settled[rows] &= to_host(pixels) >= _MIN_SEEN * size * size
            break
        right = to_host((changes[at] * residual[:, :, None]).sum(axis=1))
        number = (inverse[rows] @ right[:, :, None])[:, :, 0]
        change = np.tile(np.eye(3), (rows.size, 1, 1))
        change[:, 0, :] += number[:, [1, 2, 0]]
        change[:, 1, :] += number[:, [4, 5, 3]]
        motion[rows] = motion[rows] @ np.linalg.inv(change)
        reach = np.abs(number[:, [0, 3]]) + (np.abs(number[:, [1, 4]]) + np.abs(number[:, [2, 5]])) * size / 2
        settled[rows] = reach.max(axis=1) < _SETTLED
        lost = ~(np.abs(motion[rows, :2, 2] - begin[rows]).max(axis=1) < _FARTHEST)
        active[rows] = ~settled[rows] & ~lost
        settled[rows] &= ~lost
    good = (settled | (steps == 0)) & usable
    sigma = np.sqrt(np.einsum("nii->ni", inverse)[:, [0, 3]] * variance[:, None])
    found = np.where(good[:, None], motion[:, :2, 2], shift)
    return found, np.where(usable[:, None], sigma, np.nan), score, good
