"""Every pixel's channel vector times a matrix: the arithmetic, strip by strip.

A strip is a run of pixels with all their channels. Each is converted, multiplied by one matrix product of the library
and written where it belongs, so that work arrays stay small however large the stack is. A pixel's result depends on
that pixel alone: NaN and infinity stay where they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from xcorr_app.gpu.runtime.arrays import Array, array_namespace, is_device_array

_ELEMENTS_PER_STRIP, _ON_DEVICE = 1 << 20, 16
"""Most elements of a strip, on the side with more channels: 8 MB a work array in float64; so many times on a device."""


def working_type(source: np.dtype, target: np.dtype) -> np.dtype:
    """Type in which channels are multiplied and added.

    float64 where the result is rounded to integers, so that the rounding is that of the exact sum, and for types that
    float32 does not hold; float32 otherwise.
    """
    narrow = source == np.float32 or (source.kind in "iu" and source.itemsize <= 2)
    return np.dtype(np.float32 if narrow and target == np.float32 else np.float64)


def mix(
    stack: Array,
    matrix: np.ndarray,
    axis: int,
    target: np.dtype,
    convert: Callable[[Array, np.dtype], Array] | None,
    *,
    clip: bool,
) -> tuple[Array, int]:
    """Multiply the channel vector of every pixel by a matrix; `convert` makes what is mixed of it, None as it is."""
    xp = array_namespace(stack)
    clipped: Array | int = 0
    before, channels, after = stack.shape[:axis], stack.shape[axis], stack.shape[axis + 1 :]
    outer, inner, mixed = math.prod(before), math.prod(after), matrix.shape[0]
    view = stack.reshape(outer, channels, inner)
    result = xp.empty((outer, mixed, inner), dtype=target)
    work = working_type(np.dtype(stack.dtype), target)
    factors = xp.asarray(matrix, dtype=work)
    # NaN and infinity in the data are the caller's own: no warning for their sums.
    is_plain, on_device = convert is None and view.dtype == work == target, is_device_array(stack)
    pixels = max(1, _ELEMENTS_PER_STRIP * (_ON_DEVICE if on_device else 1) // max(channels, mixed))
    with np.errstate(invalid="ignore", over="ignore"):
        for some in _strips(outer, inner, outer * inner if is_plain and on_device else pixels):
            strip, into = view[some[0], :, some[1]], result[some[0], :, some[1]]
            strip = strip.astype(work, copy=False) if convert is None else convert(strip, work)
            # Interleaved channels are multiplied from the right: one product for the strip, not one a pixel.
            if inner == 1:
                product = (strip[..., 0] @ factors.T)[..., None]
            else:
                product = xp.matmul(factors, strip, out=into if is_plain else None)
            if clip:
                xp.maximum(product, 0, out=product)
            if target.kind != "f":
                clipped = clipped + _round(product, target)
            if product is not into:
                into[...] = product.astype(target, copy=False)
    return result.reshape(*before, mixed, *after), int(clipped)


def _strips(outer: int, inner: int, pixels: int) -> Iterator[tuple[slice, slice]]:
    """Cut the pixels before and after the channels' axis into strips of at most so many."""
    rows, columns = max(1, pixels // inner), min(inner, pixels)
    for row in range(0, outer, rows):
        for column in range(0, inner, columns):
            yield slice(row, min(row + rows, outer)), slice(column, min(column + columns, inner))


def _round(product: Array, target: np.dtype) -> Array:
    """Round in place to what an integer type holds; returns how many values lay beyond it."""
    xp = array_namespace(product)
    limits = np.iinfo(target)
    xp.rint(product, out=product)
    beyond = xp.count_nonzero((product < limits.min) | (product > limits.max))
    xp.clip(product, limits.min, limits.max, out=product)
    return beyond
