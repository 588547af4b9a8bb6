"""Images looked at between their pixels: through linear motions, or as windows that are shifted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce
from operator import iadd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.resample.warping import warp_on_device
from xcorr_app.gpu.runtime.arrays import Array, array_namespace
from xcorr_app.registration.warping.device_warp import ndimage_of, spline_coefficients
from xcorr_app.registration.warping.matrices import Matrix, about_corner

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]


def coefficients(images: Array, order: int = 3) -> Array:
    """Coefficients of the splines through images (n, h, w), float32, mirrored about the pixels of their edges."""
    xp = array_namespace(images)
    if xp is not np and order == 3:
        return spline_coefficients(images.astype(np.float32, copy=False))
    for axis in (1, 2):
        images = ndimage_of(xp).spline_filter1d(images, order=order, axis=axis, output=np.float32, mode="mirror")
    return images


def sampled_through(images: Array, motions: Matrix, order: int = 3, outside: float | None = None) -> Array:
    """Images (n, h, w) of float32 at the places that motions (n, 3, 3) about the middle take every pixel to.

    For order 3 their `coefficients` are given, for 1 they themselves. What lies outside is mirrored, or a value.
    """
    xp = array_namespace(images)
    matrices = about_corner(motions, (int(images.shape[1]), int(images.shape[2])))[:, :2]
    if xp is not np:
        return warp_on_device(images, matrices, np.dtype(np.float32), {1: "linear", 3: "cubic"}[order], outside=outside)
    mode, value = ("mirror", 0.0) if outside is None else ("constant", outside)
    found, transform = np.empty_like(images), ndimage_of(xp).affine_transform
    for image, matrix, out in zip(images, matrices, found, strict=True):
        transform(image, matrix[:, :2], matrix[:, 2], output=out, order=order, mode=mode, cval=value, prefilter=False)
    return found


def windows_of(
    images: Array, rows: Numbers, columns: Numbers, size: tuple[int, int], numbers: Numbers | None = None
) -> Array:
    """Windows (n, *size) of images (T, h, w) of such `numbers`, or of one, which begin at rows and columns (n,).

    Edges of the images are continued.
    """
    xp = array_namespace(images)
    images = images[None] if images.ndim == 2 else images
    numbers = np.zeros(len(rows), np.intp) if numbers is None else numbers
    if xp is np:
        views, starts = _views(images, rows, columns, size)
        return views[numbers, starts[0], starts[1]]
    y, x = (
        xp.asarray(np.clip(first[:, None] + np.arange(one), 0, all_ - 1))
        for first, one, all_ in zip((rows, columns), size, images.shape[1:], strict=True)
    )
    return images[xp.asarray(numbers)[:, None, None], y[:, :, None], x[:, None, :]]


def views_of(image: NDArray[Any], rows: Numbers, columns: Numbers, size: tuple[int, int]) -> Iterator[NDArray[Any]]:
    """The same of one image of the host, one by one and without copying them."""
    views, starts = _views(image[None], rows, columns, size)
    return (views[0, row, column] for row, column in zip(*(start.tolist() for start in starts), strict=True))


def _views(
    images: NDArray[Any], rows: Numbers, columns: Numbers, size: tuple[int, int]
) -> tuple[NDArray[Any], list[Numbers]]:
    """All windows of images of the host, continued as far as rows and columns (n,) go, and where those begin there."""
    shape = images.shape[1:]
    # Farther beyond the edge than a window there is nothing new.
    starts = [np.clip(first, -one, all_) for first, one, all_ in zip((rows, columns), size, shape, strict=True)]
    rims = [
        (max(0, -int(first.min(initial=0))), max(0, int(first.max(initial=0)) + one - all_))
        for first, one, all_ in zip(starts, size, shape, strict=True)
    ]
    padded = np.pad(images, [(0, 0), *rims], mode="edge") if np.any(rims) else images
    views = np.lib.stride_tricks.sliding_window_view(padded, size, axis=(1, 2))
    return views, [first + rim for first, (rim, _) in zip(starts, rims, strict=True)]


def shifted_windows(
    splines: Array,
    order: int,
    place: Numbers,
    size: tuple[int, int],
    shift: Floats,
    numbers: Numbers | None = None,
    *,
    polynomials: bool = False,
) -> Array:
    """Windows (n, *size) that begin at places (n, 2) of images, displaced by (n, 2): along each axis a few products.

    `splines` are the `coefficients` of an order, 3 or 5; or with `polynomials` through so many pixels and one the
    images themselves, which take no part of what is farther away.
    """
    xp, taps = array_namespace(splines), order + 1
    whole = np.floor(shift).astype(np.intp)
    begin = place + whole - order // 2
    part = windows_of(splines, begin[:, 0], begin[:, 1], (size[0] + order, size[1] + order), numbers)
    for axis, fraction in enumerate((shift - whole).T):
        at_taps = np.arange(taps) - order // 2
        if polynomials:
            rest = np.broadcast_to(at_taps, (taps, taps))[~np.eye(taps, dtype=bool)].reshape(taps, order)
            found_weights = ((fraction[:, None, None] - rest) / (at_taps[:, None] - rest)).prod(axis=2)
        else:  # a B-spline as a sum of truncated powers
            away = taps / 2 - np.abs(fraction[:, None] - at_taps)
            terms = [(-1) ** k * math.comb(taps, k) * np.maximum(away - k, 0) ** order for k in range(taps)]
            found_weights = sum(terms) / math.factorial(order)
        weights = xp.asarray(found_weights.astype(np.float32)[:, :, None, None])
        cuts = [(slice(None),) * (axis + 1) + (slice(k, k + size[axis]),) for k in range(taps)]
        part = reduce(iadd, (part[cut] * weights[:, k] for k, cut in enumerate(cuts)))
    return part
