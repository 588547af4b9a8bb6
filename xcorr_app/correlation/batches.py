"""Batches of correlations that device memory does not hold as a whole: cut in halves, pair by pair if need be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xcorr_app.gpu.peaks import standard_values
from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array
from xcorr_app.gpu.runtime.memory import attempt, in_parts, with_second_try

PlanesOf = Callable[[Array, Array], Array]
"""Computes planes (N, M, ny, nx) from lefts (N or 1, 1, H, W) and rights (1 or N, M, H', W')."""


def planes_in_batches(
    planes_of: PlanesOf, lefts: Array, rights: Array, window_shape: tuple[int, int], dtype: np.dtype[Any]
) -> Array:
    """Planes of a whole batch; where device memory runs out, of smaller and smaller parts of it.

    Parameters
    ----------
    planes_of : callable
        ``planes_of(lefts, rights)``, for which every pair is a matter of its own.
    lefts : ndarray, shape (N or 1, 1, H, W)
    rights : ndarray, shape (1 or N, M, H', W')
    window_shape : (int, int)
        Shifts along rows and columns.
    dtype : dtype
        Of the planes.

    Returns
    -------
    ndarray, shape (N, M, ny, nx)

    Raises
    ------
    DeviceMemoryError
        If the planes, or one pair alone, do not fit into the device's memory.
    """
    if whole := attempt(planes_of, lefts, rights):
        return whole.pop()
    shape = (max(lefts.shape[0], rights.shape[0]), rights.shape[1], *window_shape)
    needed = np.prod(shape, dtype=np.float64) * np.dtype(dtype).itemsize / 1e9
    planes = with_second_try(
        array_namespace(lefts).empty,
        shape,
        dtype,
        what=f"planes of {shape[0] * shape[1]} pairs over {window_shape[0]} x {window_shape[1]} shifts take "
        f"{needed:.2f} GB, give a smaller max_shift or fewer pairs at a time",
    )
    _fill(planes, planes_of, lefts, rights)
    return planes


def all_finite(array: Array) -> bool:
    """Whether an array holds neither NaN nor infinite values, asked piece by piece where device memory is short.

    Raises
    ------
    DeviceMemoryError
        If even one matrix is too much.
    """
    xp: Any = array_namespace(array)

    def finite(part: Array) -> bool:
        if is_device_array(part) and part.dtype == np.float32 and part.ndim > 1 and part.size:
            return standard_values.all_finite(part)
        return bool(xp.isfinite(part).all())

    if array.ndim < 3:
        return with_second_try(finite, array, what="looking for NaN takes one byte for every element")
    parts = in_parts(lambda a, b: finite(array[a:b]), len(array), alone=lambda i: all_finite(array[i]))
    return all(is_finite for _, is_finite in parts)


def _fill(planes: Array, planes_of: PlanesOf, lefts: Array, rights: Array) -> None:
    """Write the planes of the batch into their place: sets of pairs, then pairs, as many at a time as fit."""
    shapes = " with ".join(f"{height} x {width}" for height, width in (lefts.shape[-2:], rights.shape[-2:]))
    what = f"one pair of matrices, {shapes}, does not fit, give a smaller max_shift"

    def part(array: Array, a: int, b: int) -> Array:
        return array if array.shape[0] == 1 else array[a:b]

    def some(a: int, b: int) -> None:
        planes[a:b] = planes_of(part(lefts, a, b), part(rights, a, b))

    def one_set(i: int) -> None:
        left, right = part(lefts, i, i + 1), part(rights, i, i + 1)

        def pairs(a: int, b: int) -> None:
            planes[i : i + 1, a:b] = planes_of(left, right[:, a:b])

        for _ in in_parts(pairs, planes.shape[1], what=what):
            pass

    for _ in in_parts(some, planes.shape[0], alone=one_set):
        pass
